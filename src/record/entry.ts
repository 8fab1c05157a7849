/**
 * One line of a drop → an entry: parsed, checked against data/schema/entry.schema.json, normalized. Whatever is wrong has a name
 * (src/record/reject-reasons.ts): a reject takes out the line, a page or a fact; a repair is only counted. docs/drop-format.md lists them all.
 */
import { readFileSync } from 'node:fs';
import { type ErrorObject, type ValidateFunction, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { keyFromHost } from '../domain/host-key.ts';
import { hasRepeatedName } from '../json/repeated-names.ts';
import { SHIPPED_SCHEMA_OPTIONS } from '../json/shipped-schemas.ts';
import { LIMITS } from '../limits.ts';
import { isLanguage } from './language-codes.ts';
import { type EntryPage, readPages } from './page-urls.ts';
import { quoteJson } from './quote.ts';
import { DETAIL_MAX_CHARACTERS, Diagnostics, type Reject, type RejectReason } from './reject-reasons.ts';
import { filteringOrdinal, iabOrdinal } from './taxonomy.ts';
import type { VocabularyScope } from './vocabulary.ts';

/** Longest line that is read, in bytes, its line end not counted. */
export const LINE_MAX_BYTES = LIMITS.lineBytes.value;

/** What the index stores of one domain. */
export interface Entry {
  /** The key: canonical domain. */
  readonly domain: string;
  /** ISO 639-1. */
  readonly language?: string;
  /** In vocabulary order, each type at most once. */
  readonly pageTypes: readonly EntryPage[];
  /** Position in `iabPaths`. */
  readonly iabCategory?: number;
  /** Positions in `filteringCategories`, ascending, each once. */
  readonly filteringCategories: readonly number[];
  /** 0 to 1000. */
  readonly openPageRankHundredths?: number;
  /** 1 to 4,294,967,295. */
  readonly globalRank?: number;
}

/** What came of one line; `entry` is absent where the whole line is rejected. */
export interface ParsedLine {
  readonly entry: Entry | undefined;
  readonly rejects: readonly Reject[];
  readonly repairs: readonly string[];
}

const SCHEMA_URL = new URL('../../data/schema/entry.schema.json', import.meta.url);
/** Compiled with the first line that is read this way: a drop without odd lines needs it for its sample alone. */
let validate: ValidateFunction<RawEntry> | undefined;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The fields of a line once what the schema refuses has been taken out. */
interface RawEntry {
  domain: string;
  language?: string;
  page_types?: Record<string, string>;
  iab_category?: string;
  filtering_categories?: string[];
  open_page_rank?: number;
  global_rank?: number;
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  'domain',
  'language',
  'page_types',
  'iab_category',
  'filtering_categories',
  'open_page_rank',
  'global_rank',
]);

/** Where the schema refuses a value → the reason. `*` stands for a member of the field. */
const SCHEMA_REASONS: Readonly<Record<string, RejectReason>> = {
  'domain:type': 'domain_wrong_type',
  'domain:minLength': 'domain_empty',
  'domain:maxLength': 'domain_too_long',
  'language:type': 'language_wrong_type',
  'language:minLength': 'language_unknown',
  'language:maxLength': 'language_unknown',
  'page_types:type': 'page_types_wrong_type',
  'page_types:maxProperties': 'page_types_too_many',
  'page_types/*:type': 'page_url_wrong_type',
  'page_types/*:minLength': 'page_url_invalid',
  'page_types/*:maxLength': 'page_url_too_long',
  'iab_category:type': 'iab_category_wrong_type',
  'iab_category:minLength': 'iab_category_unknown',
  'iab_category:maxLength': 'iab_category_unknown',
  'filtering_categories:type': 'filtering_categories_wrong_type',
  'filtering_categories:maxItems': 'filtering_categories_too_many',
  'filtering_categories/*:type': 'filtering_category_wrong_type',
  'filtering_categories/*:minLength': 'filtering_category_unknown',
  'filtering_categories/*:maxLength': 'filtering_category_unknown',
  'open_page_rank:type': 'open_page_rank_wrong_type',
  'open_page_rank:minimum': 'open_page_rank_out_of_range',
  'open_page_rank:maximum': 'open_page_rank_out_of_range',
  'global_rank:type': 'global_rank_wrong_type',
  'global_rank:minimum': 'global_rank_out_of_range',
  'global_rank:maximum': 'global_rank_out_of_range',
};

/** Parses one line, given without its line end. Never throws for what a line may hold. */
export function parseEntry(line: Uint8Array, scope: VocabularyScope = 'full'): ParsedLine {
  const diagnostics = new Diagnostics();
  const entry = readEntry(line, scope, diagnostics);
  return { entry, rejects: diagnostics.rejects, repairs: diagnostics.repairs };
}

function readEntry(line: Uint8Array, scope: VocabularyScope, diagnostics: Diagnostics): Entry | undefined {
  const raw = readRaw(line, diagnostics);
  if (raw === undefined) return undefined;
  const domain = readDomain(raw.domain, diagnostics);
  if (domain === undefined) return undefined;
  const language = readLanguage(raw.language, diagnostics);
  const iabCategory = readIabCategory(raw.iab_category, diagnostics);
  const openPageRankHundredths = readOpenPageRank(raw.open_page_rank, diagnostics);
  return {
    domain,
    ...(language === undefined ? {} : { language }),
    pageTypes: readPages(raw.page_types, domain, scope, diagnostics),
    ...(iabCategory === undefined ? {} : { iabCategory }),
    filteringCategories: readFilteringCategories(raw.filtering_categories, diagnostics),
    ...(openPageRankHundredths === undefined ? {} : { openPageRankHundredths }),
    ...(raw.global_rank === undefined ? {} : { globalRank: raw.global_rank }),
  };
}

function readRaw(line: Uint8Array, diagnostics: Diagnostics): RawEntry | undefined {
  let text: string;
  try {
    text = utf8.decode(line);
  } catch {
    return diagnostics.rejectLine('invalid_utf8', '');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return diagnostics.rejectLine('invalid_json', error instanceof Error ? error.message : '');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return diagnostics.rejectLine('not_an_object', text);
  }
  if (hasRepeatedName(text, value)) return diagnostics.rejectLine('duplicate_key', text);
  const raw = value as Record<string, unknown>;
  dropNulls(raw, diagnostics);
  if (!Object.hasOwn(raw, 'domain')) return diagnostics.rejectLine('domain_missing', text);
  return dropInvalid(raw, diagnostics) ? (raw as unknown as RawEntry) : undefined;
}

/** Takes out what says "not known" as null, and counts fields that nobody knows. */
function dropNulls(raw: Record<string, unknown>, diagnostics: Diagnostics): void {
  for (const name of Object.keys(raw)) {
    if (!KNOWN_FIELDS.has(name)) diagnostics.repair('unknown_field');
    else if (raw[name] === null && name !== 'domain') {
      delete raw[name];
      diagnostics.repair('null_field');
    }
  }
  const pages = raw['page_types'];
  if (typeof pages !== 'object' || pages === null || Array.isArray(pages)) return;
  const members = pages as Record<string, unknown>;
  for (const name of Object.keys(members)) {
    if (members[name] !== null) continue;
    delete members[name];
    diagnostics.repair('null_field');
  }
}

/** Takes out what the schema does not allow and names it; false where the whole line goes. */
function dropInvalid(raw: Record<string, unknown>, diagnostics: Diagnostics): boolean {
  validate ??= new Validator({
    allErrors: true,
    strict: true,
    allowUnionTypes: true,
    ...SHIPPED_SCHEMA_OPTIONS,
  }).compile<RawEntry>(JSON.parse(readFileSync(SCHEMA_URL, 'utf8')));
  if (validate(raw)) return true;
  const errors = validate.errors ?? [];
  const gone = new Set<string>();
  // A field that goes as a whole goes first, so that nothing more is said about its members.
  const ordered = [...errors].sort((a, b) => depth(a) - depth(b));
  const items: number[] = [];
  for (const error of ordered) {
    const [, field = '', member] = error.instancePath.split('/');
    const place = member === undefined ? field : `${field}/${member}`;
    if (gone.has(field) || gone.has(place)) continue;
    gone.add(place);
    const reason = reasonOf(member === undefined ? field : `${field}/*`, error.keyword, raw[field]);
    if (field === 'domain') {
      const { domain } = raw;
      diagnostics.rejectLine(reason, typeof domain === 'string' ? domain : quoteJson(domain, DETAIL_MAX_CHARACTERS));
      return false;
    }
    if (member === undefined) {
      diagnostics.rejectFact(reason, quoteJson(raw[field], DETAIL_MAX_CHARACTERS));
      delete raw[field];
    } else if (field === 'page_types') {
      const name = member.replaceAll('~1', '/').replaceAll('~0', '~');
      const pages = raw[field] as Record<string, unknown>;
      diagnostics.rejectPage(reason, `${name}: ${quoteJson(pages[name], DETAIL_MAX_CHARACTERS)}`);
      delete pages[name];
    } else {
      diagnostics.rejectFact(reason, quoteJson((raw[field] as unknown[])[Number(member)], DETAIL_MAX_CHARACTERS));
      items.push(Number(member));
    }
  }
  if (items.length > 0) {
    raw['filtering_categories'] = (raw['filtering_categories'] as unknown[]).filter((_, i) => !items.includes(i));
  }
  return true;
}

/** The reason for what the schema refuses; `field` is as in `SCHEMA_REASONS`. A number too large for a double is of the right type, and out of range. */
function reasonOf(field: string, keyword: string, value: unknown): RejectReason {
  const isBeyondDoubles = keyword === 'type' && (value === Infinity || value === -Infinity);
  const reason = (isBeyondDoubles && SCHEMA_REASONS[`${field}:maximum`]) || SCHEMA_REASONS[`${field}:${keyword}`];
  if (reason === undefined) throw new Error(`No reason for what the schema refuses at ${field}: ${keyword}`);
  return reason;
}

const depth = (error: ErrorObject): number => error.instancePath.split('/').length;

// What UTF-8 looks like after somebody read it as Windows-1252, also lower-cased afterwards, or gave up on it: a letter that its first byte
// becomes, and what its second one becomes. Most of the latter (symbols, and ƒ Œ œ Ÿ ÿ) follow no such letter in any name. Š š Ž ž do, as in
// "příšera" and "Úžas"; they count after first bytes of Greek, Cyrillic, Hebrew, Arabic and ã, and where a third byte follows.
const CONTINUATION = '\u0080-\u00bf\u00ff\u0152\u0153\u0178\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122';
const CARON = '[\u0160\u0161\u017d\u017e]';
const MOJIBAKE = new RegExp(
  [
    `[\u00c2-\u00fc][${CONTINUATION}]`,
    `[\u00c3\u00ce-\u00d1\u00d7-\u00d9\u00db]${CARON}`,
    `[\u00e0-\u00ef]${CARON}[${CONTINUATION}]`,
    '\ufffd',
  ].join('|'),
);
const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;
const PORT = /^([^:]*):[0-9]{1,5}$/;

function readDomain(given: string, diagnostics: Diagnostics): string | undefined {
  if (MOJIBAKE.test(given)) return diagnostics.rejectLine('domain_mojibake', given);
  let host = given.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (host !== given) diagnostics.repair('domain_trimmed');
  const scheme = SCHEME.exec(host);
  if (scheme !== null) {
    if (!/^https?$/i.test(scheme[1]!)) return diagnostics.rejectLine('domain_scheme', given);
    host = host.slice(scheme[0].length);
  }
  const hasSlash = host.endsWith('/');
  if (hasSlash) host = host.slice(0, -1);
  if (host.includes('@')) return diagnostics.rejectLine('domain_has_userinfo', given);
  if (/[/?#\\]/.test(host)) return diagnostics.rejectLine('domain_has_path', given);
  if (scheme !== null || hasSlash) diagnostics.repair('domain_url_reduced');
  if (host.includes('%')) return diagnostics.rejectLine('domain_percent_encoded', given);
  const port = PORT.exec(host);
  if (port !== null) {
    host = port[1]!;
    diagnostics.repair('domain_port_stripped');
  }
  const result = keyFromHost(host);
  if ('problem' in result) return diagnostics.rejectLine(`domain_${result.problem}`, given);
  if (result.key !== host) noteNormalized(host, diagnostics);
  return result.key;
}

function noteNormalized(host: string, diagnostics: Diagnostics): void {
  const lower = host.toLowerCase();
  if (/[^\0-\x7f]/.test(host)) diagnostics.repair('domain_idn_encoded');
  else if (lower !== host) diagnostics.repair('domain_case_folded');
  if (lower.startsWith('www.')) diagnostics.repair('domain_www_stripped');
  if (host.endsWith('.')) diagnostics.repair('domain_trailing_dot_stripped');
}

/** `de`, and also `DE`, `de-AT`, `de_AT`: the primary subtag counts. */
function readLanguage(given: string | undefined, diagnostics: Diagnostics): string | undefined {
  if (given === undefined || isLanguage(given)) return given;
  const primary = /^([a-z]{2})(?:[-_][a-z0-9]+)*$/i.exec(given)?.[1]?.toLowerCase();
  if (primary === undefined || !isLanguage(primary)) return diagnostics.rejectFact('language_unknown', given);
  diagnostics.repair('language_folded');
  return primary;
}

function readIabCategory(given: string | undefined, diagnostics: Diagnostics): number | undefined {
  if (given === undefined) return undefined;
  return iabOrdinal(given) ?? diagnostics.rejectFact('iab_category_unknown', given);
}

function readFilteringCategories(given: readonly string[] | undefined, diagnostics: Diagnostics): number[] {
  const ordinals = new Set<number>();
  for (const name of given ?? []) {
    const ordinal = filteringOrdinal(name);
    if (ordinal === undefined) diagnostics.rejectFact('filtering_category_unknown', name);
    else if (ordinals.has(ordinal)) diagnostics.repair('filtering_category_duplicate');
    else ordinals.add(ordinal);
  }
  return [...ordinals].sort((a, b) => a - b);
}

/** In hundredths, as the decimal is written and halves up: 4.345 is 4.35. A product with 100 would say 434.49999999999994. */
function readOpenPageRank(given: number | undefined, diagnostics: Diagnostics): number | undefined {
  if (given === undefined) return undefined;
  // Smaller ones are written with an exponent.
  const inHundredths = given < 1e-6 ? given * 100 : Number(`${given}e2`);
  const hundredths = Math.round(inHundredths);
  if (inHundredths !== hundredths) diagnostics.repair('open_page_rank_rounded');
  return hundredths;
}
