/** Reads the `page_types` of an entry: maps names to the vocabulary, converts URLs to WHATWG form, and checks both. */
import { keyFromHost } from '../domain/host-key.ts';
import { registrableDomain } from '../domain/public-suffix.ts';
import { LIMITS } from '../limits.ts';
import type { Diagnostics } from './reject-reasons.ts';
import { canonicalPageType, pageTypeOrdinal, pageTypes, type VocabularyScope } from './vocabulary.ts';

/** A verified page: the name of its type, the type's position in vocabulary order, and the URL in WHATWG form (ASCII). */
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
  /** Name of the type as in the drop. */
  readonly dropName: string;
  readonly url: string;
}

/** Reads the pages of an entry. Returns them in vocabulary order. Records rejects and repairs in `diagnostics`. */
export function readPages(
  pages: Readonly<Record<string, string>> | undefined,
  key: string,
  scope: VocabularyScope,
  diagnostics: Diagnostics,
): EntryPage[] {
  if (pages === undefined) return [];
  const read: EntryPage[] = [];
  for (const { type, ordinal, dropName, url } of namePages(pages, diagnostics)) {
    const href = readUrl(url, dropName, key, diagnostics);
    if (href === undefined) continue;
    if (scope === 'core' && ordinal >= coreCount) diagnostics.repair('page_type_outside_scope');
    else read.push({ type, ordinal, url: href });
  }
  return read.sort((a, b) => a.ordinal - b.ordinal);
}

/** Maps names to the vocabulary. If several names mean the same type, keeps the vocabulary's own name, otherwise the first. */
function namePages(pages: Readonly<Record<string, string>>, diagnostics: Diagnostics): NamedPage[] {
  const byOrdinal = new Map<number, NamedPage>();
  for (const [dropName, url] of Object.entries(pages)) {
    const type = canonicalPageType(dropName);
    const ordinal = type === undefined ? undefined : pageTypeOrdinal(type);
    if (type === undefined || ordinal === undefined) {
      diagnostics.rejectPage('page_type_unknown', `${dropName}: ${url}`);
      continue;
    }
    const page = { type, ordinal, dropName, url };
    const earlier = byOrdinal.get(ordinal);
    if (earlier === undefined) byOrdinal.set(ordinal, page);
    else {
      const rejected = dropName === type ? earlier : page;
      if (rejected === earlier) byOrdinal.set(ordinal, page);
      diagnostics.rejectPage('page_type_duplicate', `${rejected.dropName}: ${rejected.url}`);
    }
  }
  for (const { type, dropName } of byOrdinal.values()) if (dropName !== type) diagnostics.repair('page_type_alias');
  return [...byOrdinal.values()];
}

/** Returns a page's URL in WHATWG form, or undefined if it is rejected. */
function readUrl(text: string, type: string, key: string, diagnostics: Diagnostics): string | undefined {
  const detail = `${type}: ${text}`;
  if (CONTROL.test(text)) return diagnostics.rejectPage('page_url_control_character', detail);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return diagnostics.rejectPage('page_url_invalid', detail);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return diagnostics.rejectPage('page_url_scheme', detail);
  if (url.username !== '' || url.password !== '') return diagnostics.rejectPage('page_url_userinfo', detail);
  if (!isOnDomain(url.hostname, key)) return diagnostics.rejectPage('page_off_domain', detail);
  // Percent-encoding can make it longer than the schema allows.
  if (url.href.length > PAGE_URL_MAX_BYTES) return diagnostics.rejectPage('page_url_too_long', detail);
  if (url.href !== text) diagnostics.repair('page_url_canonicalized');
  return url.href;
}

/** Maximum size of a page URL in WHATWG form, in bytes. */
export const PAGE_URL_MAX_BYTES = LIMITS.pageUrlBytes.value;

/** True if a host is the key, or has the same registrable domain (private suffixes count as suffixes). */
function isOnDomain(host: string, key: string): boolean {
  if (host === key) return true;
  const result = keyFromHost(host);
  if ('problem' in result) return false;
  if (result.key === key) return true;
  const registrable = registrableDomain(key);
  return registrable !== undefined && registrableDomain(result.key) === registrable;
}
