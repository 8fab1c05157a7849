/** The byte strings that records are composed of, and the wheels that choose among them. */
import { filteringCategories, filteringOrdinal, iabCategories } from '../../src/record/taxonomy.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { assumed, model, namesOf, wheelOf } from './model.ts';
import { mix } from './random.ts';
import { makeWheel, Pool, type Wheel } from './weighted-choice.ts';

/** A type's paths are learned if the sample has at least this many URLs of it. */
const LEARN_FROM = 400;
/** Types whose paths are never learned, because the sample's pages of that type are all of one kind. */
const NOT_TYPICAL = new Set(['help']);

export const types = pageTypes('full').map((type) => type.name);

/** Beginnings of page URLs. Each site uses one of them. */
export const SITE_PREFIXES = ['https://www.', 'https://', 'http://www.', 'http://'];
export const HTTPS_APEX = 1;
const [onDomain, onWww] = model.pages.hosts;
const [https, http] = model.pages.schemes;
export const sitePrefixWheel = makeWheel([onWww * https, onDomain * https, onWww * http, onDomain * http], 1024);

export const endings = namesOf(model.pages.endings);
export const endingWheel = wheelOf(model.pages.endings, 256);
export const locales = new Pool(namesOf(model.pages.locales).map((locale) => `/${locale}`));
export const localeWheel = wheelOf(model.pages.locales, 256);
/** Share of sites whose page paths begin with a locale. */
export const LOCAL_SHARE = model.pages.local[0] / model.pages.local[1];

/** `type * SITE_PREFIXES.length + prefix` → `"login":"https://www.` */
export const openings = new Pool(types.flatMap((type) => SITE_PREFIXES.map((prefix) => `"${type}":"${prefix}`)));

export interface TypePages {
  /** `path * endings.length + ending` → `/login/"`. */
  readonly paths: Pool;
  readonly pathWheel: Wheel;
  /** Share of the type's pages that are on a separate host. */
  readonly hostShare: number;
  /** → `"docs":"https://docs.` */
  readonly hosts: Pool;
  readonly hostWheel: Wheel;
}

function pagesOf(type: string): TypePages {
  const learned = model.pages.types[type];
  const typical = learned !== undefined && learned.urls >= LEARN_FROM && !NOT_TYPICAL.has(type);
  const known = typical ? learned.paths.filter(([path]) => path !== '' && path !== '/en') : (assumed.paths[type] ?? []);
  const paths = known.length > 0 ? known : [[`/${type}`, 1] as const];
  const guess = assumed.hosts[type];
  const labels =
    guess === undefined
      ? (learned?.urls ?? 0) >= LEARN_FROM
        ? learned!.hosts
        : []
      : guess.labels.map((label) => [label, 1] as const);
  const urls = learned?.urls ?? 1;
  const share = guess?.share ?? labels.reduce((sum, [, count]) => sum + count, 0) / urls;
  return {
    paths: new Pool(paths.flatMap(([path]) => endings.map((ending) => `${path}${ending}"`))),
    pathWheel: wheelOf(paths, 256),
    hostShare: labels.length === 0 ? 0 : share,
    hosts: new Pool(labels.map(([label]) => `"${type}":"https://${label}.`)),
    hostWheel: labels.length === 0 ? makeWheel([1], 256) : wheelOf(labels, 256),
  };
}

export const typePages: readonly TypePages[] = types.map(pagesOf);

const profiles = Object.values(assumed.profiles);
export const profileWheel = makeWheel(
  profiles.map(({ share }) => share),
  1024,
);
/** `profile * types.length + type` → chances in 256. */
export const presence: Uint16Array = Uint16Array.from(
  profiles.flatMap(({ has }) => types.map((type) => Math.round((has[type] ?? 0) * 256))),
);

export const words = new Pool(model.pages.words);
export const wordCount = model.pages.words.length;

const languageNames = [...new Set(Object.values(model.languages).flatMap((counts) => namesOf(counts)))].filter((code) =>
  /^(?!iw$|un$)[a-z]{2}$/.test(code),
);
/** → `,"language":"en"` */
export const languageFields = new Pool(languageNames.map((code) => `,"language":"${code}"`));

function languageWheel(top: string): Wheel {
  const counts = new Map(model.languages[top]);
  return makeWheel(
    languageNames.map((code) => counts.get(code) ?? 0),
    1024,
  );
}

const anyLanguage = languageWheel('*');
/** Public suffix number → the languages of sites under its top-level domain. */
export const languageWheels: readonly Wheel[] = namesOf(model.names.suffixes).map((suffix) => {
  const top = suffix.slice(suffix.lastIndexOf('.') + 1);
  return top !== '*' && model.languages[top] !== undefined ? languageWheel(top) : anyLanguage;
});
export const familyLanguages: Wheel = anyLanguage;

/** → `,"iab_category":"…"` */
export const iabFields = new Pool(iabCategories.map(({ path }) => `,"iab_category":${JSON.stringify(path)}`));
/** Creates a wheel on which popularity falls with the rank (Zipf-like). The ranks of the symbols are shuffled. */
function fallingWheel(factors: readonly number[], size: number, salt: number): Wheel {
  const order = factors.map((_, symbol) => symbol).sort((a, b) => mix(a + salt) - mix(b + salt));
  const weights = new Array<number>(factors.length).fill(0);
  for (const [rank, symbol] of order.entries()) weights[symbol] = factors[symbol]! / (rank + 4);
  return makeWheel(weights, size);
}

/** Factors by tier: a site has a broad category more often than a narrow one. */
const TIER_FACTORS = [3, 1.5, 0.6, 0.3];
const tierOf = (path: string): number => path.split(' > ').length;

export const iabWheel = fallingWheel(
  iabCategories.map(({ path }) => TIER_FACTORS[tierOf(path) - 1] ?? 0.3),
  16_384,
  101,
);
export const filteringFields = new Pool(filteringCategories.map((name) => JSON.stringify(name)));
export const filteringWheel = fallingWheel(
  filteringCategories.map(() => 1),
  4096,
  211,
);
/** IAB ordinal → the filtering category that goes with its first tier. */
export const filteringOfIab: Uint16Array = Uint16Array.from(iabCategories, ({ path }) => {
  const tier = path.split(' > ')[0] ?? '';
  return filteringOrdinal(assumed.filtering_of_iab[tier] ?? 'business') ?? 0;
});
