/**
 * Parses a line of a drop as an entry, checks it against data/schema/entry.schema.json, and normalizes it. Each problem has a name
 * (src/record/reject-reasons.ts). A reject drops the line, a page or a fact; a repair is only counted. docs/drop-format.md lists all of them.
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

/** Maximum size of a line, in bytes, without its line end. */
export const LINE_MAX_BYTES = LIMITS.lineBytes.value;

/** What the index stores about one domain. */
export interface Entry {
  /** The key: the canonical domain. */
  readonly domain: string;
  /** ISO 639-1. */
  readonly language?: string;
  /** In vocabulary order, at most one page of each type. */
  readonly pageTypes: readonly EntryPage[];
  /** Position in `iabPaths`. */
  readonly iabCategory?: number;
  /** Positions in `filteringCategories`, ascending, without duplicates. */
  readonly filteringCategories: readonly number[];
  /** 0 to 1000. */
  readonly openPageRankHundredths?: number;
  /** 1 to 4,294,967,295. */
  readonly globalRank?: number;
}

/** The result of parsing a line. `entry` is undefined if the whole line is rejected. */
export interface ParsedLine {
  readonly entry: Entry | undefined;
  readonly rejects: readonly Reject[];
  readonly repairs: readonly string[];
}

const SCHEMA_URL = new URL('../../data/schema/entry.schema.json', import.meta.url);
/** Compiled for the first line that needs it: for most lines, the fast scanner of a build suffices. */
let validate: ValidateFunction<RawEntry> | undefined;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The fields of a line, after everything that the schema refuses has been removed. */
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

/** The reject reason for each field and schema keyword that can fail. `*` means a member of the field. */
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

/** Parses a line, without its line end. Does not throw, whatever the line contains. */
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

/** Removes fields and pages that are null, which means "not known". Counts unknown fields. */
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

/** Removes whatever the schema refuses, and records the reasons. Returns false if the whole line is rejected. */
function dropInvalid(raw: Record<string, unknown>, diagnostics: Diagnostics): boolean {
  validate ??= new Validator({
    allErrors: true,
    strict: true,
    allowUnionTypes: true,
    ...SHIPPED_SCHEMA_OPTIONS,
  }).compile<RawEntry>(JSON.parse(readFileSync(SCHEMA_URL, 'utf8')));
  if (validate(raw)) return true;
  const errors = validate.errors ?? [];
  const removed = new Set<string>();
  // Errors of whole fields come first, so that no errors are reported for the members of a removed field.
  const ordered = [...errors].sort((a, b) => depth(a) - depth(b));
  const items: number[] = [];
  for (const error of ordered) {
    const [, field = '', member] = error.instancePath.split('/');
    const place = member === undefined ? field : `${field}/${member}`;
    if (removed.has(field) || removed.has(place)) continue;
    removed.add(place);
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

/**
 * Returns the reject reason for a schema error. `field` is as in `SCHEMA_REASONS`. A number that is too large for a double counts as out of
 * range, although the schema reports a wrong type.
 */
function reasonOf(field: string, keyword: string, value: unknown): RejectReason {
  const isBeyondDoubles = keyword === 'type' && (value === Infinity || value === -Infinity);
  const reason = (isBeyondDoubles && SCHEMA_REASONS[`${field}:maximum`]) || SCHEMA_REASONS[`${field}:${keyword}`];
  if (reason === undefined) throw new Error(`No reason for what the schema refuses at ${field}: ${keyword}`);
  return reason;
}

const depth = (error: ErrorObject): number => error.instancePath.split('/').length;

// Recognizes UTF-8 that was decoded as Windows-1252, also if it was lower-cased afterwards, and the replacement character. The patterns are
// the letter that a first byte becomes, followed by the character that a second byte becomes. Most of the latter (symbols, and ƒ Œ œ Ÿ ÿ)
// never follow such a letter in a name. Š š Ž ž do, as in "příšera" and "Úžas". They only match after first bytes of Greek, Cyrillic, Hebrew
// and Arabic and after ã, or if a third byte follows.
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

function readDomain(value: string, diagnostics: Diagnostics): string | undefined {
  if (MOJIBAKE.test(value)) return diagnostics.rejectLine('domain_mojibake', value);
  let host = value.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (host !== value) diagnostics.repair('domain_trimmed');
  const scheme = SCHEME.exec(host);
  if (scheme !== null) {
    if (!/^https?$/i.test(scheme[1]!)) return diagnostics.rejectLine('domain_scheme', value);
    host = host.slice(scheme[0].length);
  }
  const hasSlash = host.endsWith('/');
  if (hasSlash) host = host.slice(0, -1);
  if (host.includes('@')) return diagnostics.rejectLine('domain_has_userinfo', value);
  if (/[/?#\\]/.test(host)) return diagnostics.rejectLine('domain_has_path', value);
  if (scheme !== null || hasSlash) diagnostics.repair('domain_url_reduced');
  if (host.includes('%')) return diagnostics.rejectLine('domain_percent_encoded', value);
  const port = PORT.exec(host);
  if (port !== null) {
    host = port[1]!;
    diagnostics.repair('domain_port_stripped');
  }
  const result = keyFromHost(host);
  if ('problem' in result) return diagnostics.rejectLine(`domain_${result.problem}`, value);
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

/** Accepts `de`, and also `DE`, `de-AT` and `de_AT`, of which it uses the primary subtag. */
function readLanguage(value: string | undefined, diagnostics: Diagnostics): string | undefined {
  if (value === undefined || isLanguage(value)) return value;
  const primary = /^([a-z]{2})(?:[-_][a-z0-9]+)*$/i.exec(value)?.[1]?.toLowerCase();
  if (primary === undefined || !isLanguage(primary)) return diagnostics.rejectFact('language_unknown', value);
  diagnostics.repair('language_folded');
  return primary;
}

function readIabCategory(value: string | undefined, diagnostics: Diagnostics): number | undefined {
  if (value === undefined) return undefined;
  return iabOrdinal(value) ?? diagnostics.rejectFact('iab_category_unknown', value);
}

function readFilteringCategories(names: readonly string[] | undefined, diagnostics: Diagnostics): number[] {
  const ordinals = new Set<number>();
  for (const name of names ?? []) {
    const ordinal = filteringOrdinal(name);
    if (ordinal === undefined) diagnostics.rejectFact('filtering_category_unknown', name);
    else if (ordinals.has(ordinal)) diagnostics.repair('filtering_category_duplicate');
    else ordinals.add(ordinal);
  }
  return [...ordinals].sort((a, b) => a - b);
}

/** Returns the rank in hundredths, rounded half up as a decimal: 4.345 gives 435. Multiplying by 100 would give 434.49999999999994. */
function readOpenPageRank(value: number | undefined, diagnostics: Diagnostics): number | undefined {
  if (value === undefined) return undefined;
  // The text of a smaller number already has an exponent.
  const inHundredths = value < 1e-6 ? value * 100 : Number(`${value}e2`);
  const hundredths = Math.round(inHundredths);
  if (inHundredths !== hundredths) diagnostics.repair('open_page_rank_rounded');
  return hundredths;
}
