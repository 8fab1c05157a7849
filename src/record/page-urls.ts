/** The `page_types` of an entry: names brought to the vocabulary, URLs to WHATWG form, both checked. */
import { keyFromHost } from '../domain/host-key.ts';
import { registrableDomain } from '../domain/public-suffix.ts';
import { LIMITS } from '../limits.ts';
import type { Diagnostics } from './reject-reasons.ts';
import { canonicalPageType, pageTypeOrdinal, pageTypes, type VocabularyScope } from './vocabulary.ts';

/** A verified page: the type's name and its position in vocabulary order, and the URL in WHATWG form (ASCII). */
export interface EntryPage {
  readonly type: string;
  readonly ordinal: number;
  readonly url: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const CONTROL = /[\0-\x1f\x7f]/;

/** Number of types in the core vocabulary, which is a prefix of the full one. */
const coreCount = pageTypes('core').length;

interface NamedPage {
  readonly type: string;
  readonly ordinal: number;
  readonly given: string;
  readonly url: string;
}

/** Reads the pages of an entry, in vocabulary order. What is rejected or repaired goes into `diagnostics`. */
export function readPages(
  pages: Readonly<Record<string, string>> | undefined,
  key: string,
  scope: VocabularyScope,
  diagnostics: Diagnostics,
): EntryPage[] {
  if (pages === undefined) return [];
  const read: EntryPage[] = [];
  for (const { type, ordinal, given, url } of namePages(pages, diagnostics)) {
    const href = readUrl(url, given, key, diagnostics);
    if (href === undefined) continue;
    if (scope === 'core' && ordinal >= coreCount) diagnostics.repair('page_type_outside_scope');
    else read.push({ type, ordinal, url: href });
  }
  return read.sort((a, b) => a.ordinal - b.ordinal);
}

/** Brings names to the vocabulary. Where several mean one type, the vocabulary's own spelling wins, then the first. */
function namePages(pages: Readonly<Record<string, string>>, diagnostics: Diagnostics): NamedPage[] {
  const byOrdinal = new Map<number, NamedPage>();
  for (const [given, url] of Object.entries(pages)) {
    const type = canonicalPageType(given);
    const ordinal = type === undefined ? undefined : pageTypeOrdinal(type);
    if (type === undefined || ordinal === undefined) {
      diagnostics.rejectPage('page_type_unknown', `${given}: ${url}`);
      continue;
    }
    const page = { type, ordinal, given, url };
    const other = byOrdinal.get(ordinal);
    if (other === undefined) byOrdinal.set(ordinal, page);
    else {
      const loser = given === type ? other : page;
      if (loser === other) byOrdinal.set(ordinal, page);
      diagnostics.rejectPage('page_type_duplicate', `${loser.given}: ${loser.url}`);
    }
  }
  for (const { type, given } of byOrdinal.values()) if (given !== type) diagnostics.repair('page_type_alias');
  return [...byOrdinal.values()];
}

/** A page's URL in WHATWG form, or undefined where it is rejected. */
function readUrl(given: string, type: string, key: string, diagnostics: Diagnostics): string | undefined {
  const detail = `${type}: ${given}`;
  if (CONTROL.test(given)) return diagnostics.rejectPage('page_url_control_character', detail);
  let url: URL;
  try {
    url = new URL(given);
  } catch {
    return diagnostics.rejectPage('page_url_invalid', detail);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return diagnostics.rejectPage('page_url_scheme', detail);
  if (url.username !== '' || url.password !== '') return diagnostics.rejectPage('page_url_userinfo', detail);
  if (!isOnDomain(url.hostname, key)) return diagnostics.rejectPage('page_off_domain', detail);
  // Percent-encoding can make it longer than what the schema allowed.
  if (url.href.length > PAGE_URL_MAX_BYTES) return diagnostics.rejectPage('page_url_too_long', detail);
  if (url.href !== given) diagnostics.repair('page_url_canonicalized');
  return url.href;
}

/** Longest page URL, in bytes of its WHATWG form. */
export const PAGE_URL_MAX_BYTES = LIMITS.pageUrlBytes.value;

/** True where a host has the key's registrable domain (private suffixes count as suffixes), or is the key itself. */
function isOnDomain(host: string, key: string): boolean {
  if (host === key) return true;
  const own = keyFromHost(host);
  if ('problem' in own) return false;
  if (own.key === key) return true;
  const registrable = registrableDomain(key);
  return registrable !== undefined && registrableDomain(own.key) === registrable;
}
