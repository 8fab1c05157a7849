/** Records and requests to compare local verdicts with the server's: labelled real pages, and generated ones. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { parseTarget } from '../../src/domain/target.ts';
import type { ExportedPolicy } from '../../src/guard/local-verdicts.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { mutate, randomUrl, respell } from '../../tools/fuzz/urls.ts';
import { METHODS } from '../../tools/fuzz/verdict.ts';
import { Random } from '../../tools/random.ts';
import type { EntryInput } from '../support/index-file.ts';

export interface Question {
  readonly url: string;
  readonly method: string;
}

const LABELLED = new URL('../data/labelled-urls.tsv.gz', import.meta.url);
const TYPES = pageTypes().map(({ name }) => name);
const CATEGORIES = ['News', 'Business', 'Phishing', 'Malware', 'Gambling', 'Shopping'];
const PATHS = [
  '/',
  '/members',
  '/prices',
  '/app/enter.php',
  '/#/login',
  '/?page=login',
  '/a/b/c',
  '/über',
  '/x%20y',
  '/cart;v=1',
];

/** Returns every labelled URL. */
export function labelledUrls(): string[] {
  const [heading = '', ...lines] = gunzipSync(readFileSync(LABELLED)).toString('utf8').split('\n');
  const at = heading.split('\t').indexOf('url');
  return lines.filter((line) => line !== '').map((line) => line.split('\t')[at]!);
}

/** Returns an entry that a builder accepts; undefined if it would reject a page. */
function entryOf(
  domain: string,
  pages: Readonly<Record<string, string>>,
  categories: string[],
): EntryInput | undefined {
  const entry = {
    domain,
    language: 'en',
    page_types: pages,
    ...(categories.length > 0 && { filtering_categories: categories }),
  };
  const { entry: read, rejects } = parseEntry(Buffer.from(JSON.stringify(entry)));
  return read === undefined || rejects.length > 0 ? undefined : entry;
}

/** Records for two thirds of the labelled domains: some with the labelled page itself, some with other pages, some with categories. */
function labelledEntries(random: Random): EntryInput[] {
  const entries = new Map<string, EntryInput>();
  for (const url of labelledUrls()) {
    const target = parseTarget(url);
    if ('problem' in target || !target.classifiable || entries.has(target.key) || random.chance(33)) continue;
    const pages = random.chance(50) ? { [random.pick(TYPES)]: url } : {};
    const entry = entryOf(target.key, pages, random.chance(10) ? [random.pick(CATEGORIES)] : []);
    if (entry !== undefined) entries.set(target.key, entry);
  }
  return [...entries.values()];
}

/** Domains of generated records: registrable ones, hosts below them with and without their own records, private suffixes. */
const DOMAINS = Array.from({ length: 120 }, (_, i) => `site-${i}.example.com`)
  .concat(Array.from({ length: 40 }, (_, i) => `shop${i}.co.uk`))
  .concat(Array.from({ length: 40 }, (_, i) => `user${i}.github.io`))
  .concat(['example.com', 'example.org', 'docs.example.com', 'münchen.de', 'github.io', 'a.b.github.io', 'www.com']);

function generatedEntries(random: Random): EntryInput[] {
  const entries: EntryInput[] = [];
  for (const domain of DOMAINS) {
    for (const host of [domain, `app.${domain}`, `deep.app.${domain}`]) {
      if (random.chance(45)) continue;
      const pages = Object.fromEntries(
        Array.from({ length: random.below(5) }, () => [
          random.pick(TYPES),
          `${random.pick(['https', 'http'])}://${random.pick(['', 'www.', 'login.'])}${host}${random.pick(PATHS)}`,
        ]),
      );
      const entry = entryOf(
        new URL(`http://${host}/`).hostname,
        pages,
        random.chance(15) ? [random.pick(CATEGORIES)] : [],
      );
      if (entry !== undefined) entries.push(entry);
    }
  }
  return entries;
}

/** All records, each domain once. */
export function worldEntries(seed: number): EntryInput[] {
  const random = new Random(seed);
  const all = [...labelledEntries(random), ...generatedEntries(random)];
  return [...new Map(all.map((entry) => [entry.domain, entry])).values()];
}

/** Requests about the records: their pages in many spellings, their hosts with any path, and URLs of all kinds. */
export function* questions(seed: number, count: number): Generator<Question> {
  const random = new Random(seed);
  for (let left = count; left > 0; left--) {
    const method = random.chance(60) ? 'GET' : random.pick([...METHODS, 'PUT', 'get', 'PROPFIND']);
    yield { url: randomQuestion(random), method };
  }
}

function randomQuestion(random: Random): string {
  const kind = random.below(10);
  if (kind === 0) return randomUrl(random);
  if (kind === 1) return mutate(random, randomUrl(random));
  const host = `${random.pick(['', '', 'www.', 'app.', 'deep.app.', 'other.', 'login.'])}${random.pick(DOMAINS)}`;
  if (kind === 2) return host + random.pick(['', '/', '/login', '/members']);
  const page = `https://${host}${random.pick(PATHS)}`;
  if (kind === 3) return respell(random, page);
  if (kind === 4) return mutate(random, page);
  if (kind === 5) return page + random.pick(['/', '/reset', '.php', '?x=1', '#top', '%2f', '//', '?page=login&x=1']);
  const tail = new URL(randomUrlOf(random));
  return `${random.pick(['https', 'http'])}://${host}${tail.pathname}${tail.search}${tail.hash}`;
}

/** A generated URL that can be parsed. */
function randomUrlOf(random: Random): string {
  for (;;) {
    const url = randomUrl(random);
    if (/^https?:/.test(url) && URL.canParse(url)) return url;
  }
}

/** A licensee's policy that affects every layer. */
export const LICENSEE = {
  format: 'pagegate-policy/1',
  profile: 'default',
  add: { hosts: [{ id: 'rival', host: 'site-3.example.com', verdict: 'flag', note: 'Legal asked us to look at it.' }] },
  override: {
    rules: { port: { allowed: [80, 443, 8080] }, category_flag: { categories: ['Gambling'] } },
    page_types: { docs: { verdict: 'flag' } },
  },
  disable: ['subscribe'],
  allow: [
    { id: 'crm', host: 'site-5.example.com', path: '/a/', methods: ['GET', 'POST'] },
    { id: 'below', host: '*.site-6.example.com', path: '/', methods: ['PUT'] },
  ],
  address_exceptions: [{ cidr: '10.1.0.0/16', note: 'Our own services.' }],
};

/** The output of `pagegate policy export FILE`. */
export function exportedPolicy(file?: string): ExportedPolicy {
  const { revision, document } = loadPolicy({ file });
  const exported = { format: 'pagegate-policy-export/1', revision, url_parser: process.versions['ada'], document };
  return JSON.parse(JSON.stringify(exported)) as ExportedPolicy;
}
