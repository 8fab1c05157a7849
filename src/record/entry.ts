/**
 * One line of a drop → an entry: parsed, checked against data/schema/entry.schema.json, normalized. Whatever is wrong has a name
 * (src/record/findings.ts): a reject takes out the line, a page or a fact; a repair is only counted. docs/drop-format.md lists them all.
 */
import { readFileSync } from 'node:fs';
import { type ErrorObject, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { keyFromHost } from '../domain/normalize.ts';
import { hasRepeatedName } from '../json/repeated.ts';
import { LIMITS } from '../limits.ts';
import { DETAIL_MAX_CHARACTERS, type Finding, type FindingReason, Findings } from './findings.ts';
import { isLanguage } from './languages.ts';
import { type EntryPage, readPages } from './page-urls.ts';
import { quoteJson } from './quote.ts';
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
  readonly rejects: readonly Finding[];
  readonly repairs: readonly string[];
}

const SCHEMA_URL = new URL('../../data/schema/entry.schema.json', import.meta.url);
const validate = new Validator({ allErrors: true, strict: true, allowUnionTypes: true }).compile<RawEntry>(
  JSON.parse(readFileSync(SCHEMA_URL, 'utf8')),
);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The fields of a line once the schema's complaints have been taken out. */
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

/** Where the schema complains → the reason. `*` stands for a member of the field. */
const SCHEMA_REASONS: Readonly<Record<string, FindingReason>> = {
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
  const findings = new Findings();
  const entry = readEntry(line, scope, findings);
  return { entry, rejects: findings.rejects, repairs: findings.repairs };
}

function readEntry(line: Uint8Array, scope: VocabularyScope, findings: Findings): Entry | undefined {
  const raw = readRaw(line, findings);
  if (raw === undefined) return undefined;
  const domain = readDomain(raw.domain, findings);
  if (domain === undefined) return undefined;
  const language = readLanguage(raw.language, findings);
  const iabCategory = readIabCategory(raw.iab_category, findings);
  const openPageRankHundredths = readOpenPageRank(raw.open_page_rank, findings);
  return {
    domain,
    ...(language === undefined ? {} : { language }),
    pageTypes: readPages(raw.page_types, domain, scope, findings),
    ...(iabCategory === undefined ? {} : { iabCategory }),
    filteringCategories: readFilteringCategories(raw.filtering_categories, findings),
    ...(openPageRankHundredths === undefined ? {} : { openPageRankHundredths }),
    ...(raw.global_rank === undefined ? {} : { globalRank: raw.global_rank }),
  };
}

function readRaw(line: Uint8Array, findings: Findings): RawEntry | undefined {
  let text: string;
  try {
    text = utf8.decode(line);
  } catch {
    return findings.rejectLine('invalid_utf8', '');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return findings.rejectLine('invalid_json', error instanceof Error ? error.message : '');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return findings.rejectLine('not_an_object', text);
  }
  if (hasRepeatedName(text, value)) return findings.rejectLine('duplicate_key', text);
  const raw = value as Record<string, unknown>;
  dropNulls(raw, findings);
  if (!Object.hasOwn(raw, 'domain')) return findings.rejectLine('domain_missing', text);
  return dropInvalid(raw, findings) ? (raw as unknown as RawEntry) : undefined;
}

/** Takes out what says "not known" as null, and counts fields that nobody knows. */
function dropNulls(raw: Record<string, unknown>, findings: Findings): void {
  for (const name of Object.keys(raw)) {
    if (!KNOWN_FIELDS.has(name)) findings.repair('unknown_field');
    else if (raw[name] === null && name !== 'domain') {
      delete raw[name];
      findings.repair('null_field');
    }
  }
  const pages = raw['page_types'];
  if (typeof pages !== 'object' || pages === null || Array.isArray(pages)) return;
  const members = pages as Record<string, unknown>;
  for (const name of Object.keys(members)) {
    if (members[name] !== null) continue;
    delete members[name];
    findings.repair('null_field');
  }
}

/** Takes out what the schema does not allow and names it; false where the whole line goes. */
function dropInvalid(raw: Record<string, unknown>, findings: Findings): boolean {
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
      findings.rejectLine(reason, typeof domain === 'string' ? domain : quoteJson(domain, DETAIL_MAX_CHARACTERS));
      return false;
    }
    if (member === undefined) {
      findings.rejectFact(reason, quoteJson(raw[field], DETAIL_MAX_CHARACTERS));
      delete raw[field];
    } else if (field === 'page_types') {
      const name = member.replaceAll('~1', '/').replaceAll('~0', '~');
      const pages = raw[field] as Record<string, unknown>;
      findings.rejectPage(reason, `${name}: ${quoteJson(pages[name], DETAIL_MAX_CHARACTERS)}`);
      delete pages[name];
    } else {
      findings.rejectFact(reason, quoteJson((raw[field] as unknown[])[Number(member)], DETAIL_MAX_CHARACTERS));
      items.push(Number(member));
    }
  }
  if (items.length > 0) {
    raw['filtering_categories'] = (raw['filtering_categories'] as unknown[]).filter((_, i) => !items.includes(i));
  }
  return true;
}

/** The reason for the schema's complaint; `field` is as in `SCHEMA_REASONS`. A number too large for a double is of the right type, and out of range. */
function reasonOf(field: string, keyword: string, value: unknown): FindingReason {
  const isBeyondDoubles = keyword === 'type' && (value === Infinity || value === -Infinity);
  const reason = (isBeyondDoubles && SCHEMA_REASONS[`${field}:maximum`]) || SCHEMA_REASONS[`${field}:${keyword}`];
  if (reason === undefined) throw new Error(`No reason for the schema's complaint at ${field}: ${keyword}`);
  return reason;
}

const depth = (error: ErrorObject): number => error.instancePath.split('/').length;

// What UTF-8 looks like after somebody read it as Windows-1252 (also lower-cased afterwards), or gave up on it. The middle dot is Catalan.
const MOJIBAKE = /[\u00c2-\u00df\u00e2-\u00f4][\u0080-\u00b6\u00b8-\u00bf\u02c6\u02dc\u2013-\u203a\u20ac\u2122]|\ufffd/;
const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;
const PORT = /^([^:]*):[0-9]{1,5}$/;

function readDomain(given: string, findings: Findings): string | undefined {
  if (MOJIBAKE.test(given)) return findings.rejectLine('domain_mojibake', given);
  let host = given.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (host !== given) findings.repair('domain_trimmed');
  const scheme = SCHEME.exec(host);
  if (scheme !== null) {
    if (!/^https?$/i.test(scheme[1]!)) return findings.rejectLine('domain_scheme', given);
    host = host.slice(scheme[0].length);
  }
  if (host.length > 1 && host.endsWith('/')) host = host.slice(0, -1);
  else if (scheme !== null && host === '') return findings.rejectLine('domain_empty', given);
  if (host.includes('@')) return findings.rejectLine('domain_has_userinfo', given);
  if (/[/?#\\]/.test(host)) return findings.rejectLine('domain_has_path', given);
  if (scheme !== null || given.endsWith('/')) findings.repair('domain_url_reduced');
  if (host.includes('%')) return findings.rejectLine('domain_percent_encoded', given);
  const port = PORT.exec(host);
  if (port !== null) {
    host = port[1]!;
    findings.repair('domain_port_stripped');
  }
  const result = keyFromHost(host);
  if ('problem' in result) return findings.rejectLine(`domain_${result.problem}`, given);
  if (result.key !== host) noteNormalized(host, findings);
  return result.key;
}

function noteNormalized(host: string, findings: Findings): void {
  const lower = host.toLowerCase();
  if (/[^\0-\x7f]/.test(host)) findings.repair('domain_idn_encoded');
  else if (lower !== host) findings.repair('domain_case_folded');
  if (lower.startsWith('www.')) findings.repair('domain_www_stripped');
  if (host.endsWith('.')) findings.repair('domain_trailing_dot_stripped');
}

/** `de`, and also `DE`, `de-AT`, `de_AT`: the primary subtag counts. */
function readLanguage(given: string | undefined, findings: Findings): string | undefined {
  if (given === undefined || isLanguage(given)) return given;
  const primary = /^([a-z]{2})(?:[-_][a-z0-9]+)*$/i.exec(given)?.[1]?.toLowerCase();
  if (primary === undefined || !isLanguage(primary)) return findings.rejectFact('language_unknown', given);
  findings.repair('language_folded');
  return primary;
}

function readIabCategory(given: string | undefined, findings: Findings): number | undefined {
  if (given === undefined) return undefined;
  return iabOrdinal(given) ?? findings.rejectFact('iab_category_unknown', given);
}

function readFilteringCategories(given: readonly string[] | undefined, findings: Findings): number[] {
  const ordinals = new Set<number>();
  for (const name of given ?? []) {
    const ordinal = filteringOrdinal(name);
    if (ordinal === undefined) findings.rejectFact('filtering_category_unknown', name);
    else if (ordinals.has(ordinal)) findings.repair('filtering_category_duplicate');
    else ordinals.add(ordinal);
  }
  return [...ordinals].sort((a, b) => a - b);
}

function readOpenPageRank(given: number | undefined, findings: Findings): number | undefined {
  if (given === undefined) return undefined;
  const hundredths = Math.round(given * 100);
  if (Math.abs(given * 100 - hundredths) > 1e-6) findings.repair('open_page_rank_rounded');
  return hundredths;
}
