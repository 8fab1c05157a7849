/**
 * Reads the lines that a careful vendor writes, straight from bytes to fields: compact JSON, `domain` first, every value in the form
 * the index keeps. It understands a line entirely or not at all: `scan` says false for whatever it does not know, good or bad, and
 * parseEntry decides. Where it says true, parseEntry finds the same entry, no rejects and no repairs; a fuzz test holds it to that.
 */
import { registrableDomain } from '../domain/public-suffix.ts';
import { ByteMap } from '../index/byte-map.ts';
import type { RecordFields } from '../index/record-fields.ts';
import { languages } from '../record/languages.ts';
import { PAGE_URL_MAX_BYTES } from '../record/page-urls.ts';
import { filteringTaxonomy, iabCategories } from '../record/taxonomy.ts';
import { pageTypes, type VocabularyScope } from '../record/vocabulary.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const HYPHEN = 0x2d;
const DOT = 0x2e;
const SLASH = 0x2f;
const ZERO = 0x30;
const NINE = 0x39;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

const NAME_MAX_BYTES = 253;
const LABEL_MAX_BYTES = 63;

// As hashBytes in the index room computes it.
const HASH_START = 0x811c9dc5 | 0;
const HASH_FACTOR = 0x01000193;

/** Not understood. */
const NO = -1;

/** Host characters: 1 letter, 2 digit or underscore, 3 hyphen, 4 dot, 0 anything else. */
const HOST_CLASS = new Uint8Array(256);
/** Characters after the host that the URL parser leaves as they are: 1 anywhere, 2 slash, 3 percent, 0 anything else. */
const TAIL_CLASS = new Uint8Array(256);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) HOST_CLASS[code] = 1;
  if (/[0-9_]/.test(character)) HOST_CLASS[code] = 2;
  if (/[A-Za-z0-9_.~!$&()*+,;:=@?#-]/.test(character)) TAIL_CLASS[code] = 1;
}
HOST_CLASS[HYPHEN] = 3;
HOST_CLASS[DOT] = 4;
TAIL_CLASS[SLASH] = 2;
TAIL_CLASS[0x25] = 3;

const LANGUAGES = new Uint8Array(0x1_0000);
for (const code of languages) LANGUAGES[(code.charCodeAt(0) << 8) | code.charCodeAt(1)] = 1;

const isPlainText = (text: string): boolean => /^[ !#-[\]-~]+$/.test(text);

function ordinals(entries: readonly (readonly [string, number])[]): ByteMap {
  const first = new Map<string, number>();
  for (const [text, value] of entries) if (isPlainText(text) && !first.has(text)) first.set(text, value);
  return new ByteMap([...first].map(([text, value]) => ({ tag: 0, text, value })));
}

const IAB = ordinals(
  iabCategories.flatMap(({ id, path }, i): [string, number][] => [
    [id, i],
    [path, i],
  ]),
);
const FILTERING = ordinals(
  filteringTaxonomy.flatMap(({ id, name }, i): [string, number][] => [
    [id, i],
    [name, i],
  ]),
);

const FIELD = {
  language: 1,
  page_types: 2,
  iab_category: 4,
  filtering_categories: 8,
  open_page_rank: 16,
  global_rank: 32,
};
/** The fields' first letters differ. */
const FIELD_OF_LETTER = new Uint8Array(256);
/** Name with quotes and colon, by field. */
const FIELD_NAMES: Record<number, Buffer> = {};
for (const [name, field] of Object.entries(FIELD)) {
  FIELD_OF_LETTER[name.charCodeAt(0)] = field;
  FIELD_NAMES[field] = Buffer.from(`"${name}":`);
}
const START = Buffer.from('{"domain":"');
const HTTP = Buffer.from('"http');

export class FastScanner {
  readonly #fields: RecordFields;
  readonly #types: ByteMap;
  #buffer: Buffer = Buffer.alloc(0);
  #hash = 0;
  /** Scheme and host of the URL read last on this line; a size of 0 stands for none. */
  #originStart = 0;
  #originSize = 0;

  /** Fills these fields; the ranges are in the buffer that was scanned. */
  constructor(fields: RecordFields, scope: VocabularyScope) {
    this.#fields = fields;
    this.#types = ordinals(pageTypes(scope).map(({ name }, i) => [name, i]));
  }

  /** Reads the line `buffer[start, end)`. True where the fields are filled; false where somebody else must read it. */
  scan(buffer: Buffer, start: number, end: number): boolean {
    const fields = this.#fields;
    this.#buffer = buffer;
    this.#originSize = 0;
    if (end - start < START.length + 4 || buffer[end - 1] !== BRACE_CLOSE || !this.#has(START, start)) return false;
    fields.clear();
    fields.source = buffer;
    fields.domainStart = start + START.length;
    let at = this.#host(fields.domainStart, end);
    if (at === NO || buffer[at] !== QUOTE || this.#startsWithWww(fields.domainStart)) return false;
    fields.domainEnd = at;
    at += 1;
    let seen = 0;
    // Every reader stops at the brace that ends the line at the latest, or finds what it does not know.
    while (buffer[at] === COMMA) {
      const field = FIELD_OF_LETTER[buffer[at + 2]!]!;
      if (field === 0 || (seen & field) !== 0) return false;
      seen |= field;
      const name = FIELD_NAMES[field]!;
      if (!this.#has(name, at + 1)) return false;
      at = this.#value(field, at + 1 + name.length, end);
      if (at === NO) return false;
    }
    return at === end - 1;
  }

  #value(field: number, at: number, end: number): number {
    switch (field) {
      case FIELD.page_types:
        return this.#pages(at, end);
      case FIELD.language:
        return this.#language(at, end);
      case FIELD.iab_category:
        return this.#iabCategory(at, end);
      case FIELD.filtering_categories:
        return this.#filteringCategories(at, end);
      case FIELD.open_page_rank:
        return this.#openPageRank(at);
      default:
        return this.#globalRank(at);
    }
  }

  #has(bytes: Uint8Array, at: number): boolean {
    for (let i = 0; i < bytes.length; i++) if (this.#buffer[at + i] !== bytes[i]) return false;
    return true;
  }

  /**
   * A string without escapes, in printable ASCII, that begins at `at`: where its closing quote is. Leaves the hash of its bytes for
   * the table it is looked up in.
   */
  #text(at: number, end: number): number {
    const buffer = this.#buffer;
    if (buffer[at] !== QUOTE) return NO;
    let hash = HASH_START;
    for (let i = at + 1; i < end; i++) {
      const byte = buffer[i]!;
      if (byte === QUOTE) {
        this.#hash = hash;
        return i;
      }
      if (byte < 0x20 || byte > 0x7e || byte === 0x5c) return NO;
      hash = Math.imul(hash ^ byte, HASH_FACTOR);
    }
    return NO;
  }

  /** A host as it stands in a key (see isPlainHost in the domain room): where it ends. */
  #host(start: number, end: number): number {
    const buffer = this.#buffer;
    let at = start;
    let labelStart = start;
    let labels = 0;
    let before = 4;
    for (; at < end; at++) {
      const kind = HOST_CLASS[buffer[at]!]!;
      if (kind === 0) break;
      if (kind === 4) {
        if (before >= 3 || at - labelStart > LABEL_MAX_BYTES) return NO;
        labels += 1;
        labelStart = at + 1;
      } else if (kind === 3 && (before === 4 || (at === labelStart + 3 && this.#isAce(labelStart)))) return NO;
      before = kind;
    }
    if (labels === 0 || before >= 3 || at - labelStart > LABEL_MAX_BYTES || at - start > NAME_MAX_BYTES) return NO;
    return HOST_CLASS[buffer[labelStart]!] === 1 ? at : NO;
  }

  #isAce(at: number): boolean {
    const buffer = this.#buffer;
    return buffer[at] === 0x78 && buffer[at + 1] === 0x6e && buffer[at + 2] === HYPHEN;
  }

  #startsWithWww(at: number): boolean {
    const buffer = this.#buffer;
    return buffer[at] === 0x77 && buffer[at + 1] === 0x77 && buffer[at + 2] === 0x77 && buffer[at + 3] === DOT;
  }

  #language(at: number, end: number): number {
    const buffer = this.#buffer;
    if (at + 4 > end || buffer[at] !== QUOTE || buffer[at + 3] !== QUOTE) return NO;
    const code = (buffer[at + 1]! << 8) | buffer[at + 2]!;
    if (LANGUAGES[code] === 0) return NO;
    this.#fields.language = code;
    return at + 4;
  }

  #iabCategory(at: number, end: number): number {
    const close = this.#text(at, end);
    if (close === NO) return NO;
    const ordinal = IAB.getHashed(0, this.#hash, this.#buffer, at + 1, close);
    if (ordinal === NO) return NO;
    this.#fields.iabCategory = ordinal;
    return close + 1;
  }

  #filteringCategories(start: number, end: number): number {
    const buffer = this.#buffer;
    if (buffer[start] !== BRACKET_OPEN) return NO;
    if (buffer[start + 1] === BRACKET_CLOSE) return start + 2;
    let at = start;
    do {
      const close = this.#text(at + 1, end);
      if (close === NO) return NO;
      const ordinal = FILTERING.getHashed(0, this.#hash, buffer, at + 2, close);
      if (ordinal === NO || !this.#addFiltering(ordinal)) return NO;
      at = close + 1;
    } while (buffer[at] === COMMA);
    return buffer[at] === BRACKET_CLOSE ? at + 1 : NO;
  }

  /** Puts an ordinal in its place; false where it is there already. */
  #addFiltering(ordinal: number): boolean {
    const { filtering } = this.#fields;
    let place = this.#fields.filteringCount;
    while (place > 0 && filtering[place - 1]! > ordinal) {
      filtering[place] = filtering[place - 1]!;
      place -= 1;
    }
    if (place > 0 && filtering[place - 1] === ordinal) return false;
    filtering[place] = ordinal;
    this.#fields.filteringCount += 1;
    return true;
  }

  /** 0 to 10 with up to two decimals. */
  #openPageRank(start: number): number {
    const buffer = this.#buffer;
    let at = start;
    const first = buffer[at]!;
    if (first < ZERO || first > NINE) return NO;
    let value = (first - ZERO) * 100;
    at += 1;
    if (first === ZERO + 1 && buffer[at] === ZERO) {
      value = 1000;
      at += 1;
    }
    if (buffer[at] === DOT) {
      let scale = 10;
      let digit = buffer[++at]!;
      if (digit < ZERO || digit > NINE) return NO;
      for (; digit >= ZERO && digit <= NINE; digit = buffer[++at]!) {
        value += (digit - ZERO) * scale;
        scale = scale === 10 ? 1 : 0;
        if (scale === 0) {
          at += 1;
          break;
        }
      }
    }
    if (value > 1000 || (buffer[at] !== COMMA && buffer[at] !== BRACE_CLOSE)) return NO;
    this.#fields.openPageRankHundredths = value;
    return at;
  }

  /** Up to nine digits. */
  #globalRank(start: number): number {
    const buffer = this.#buffer;
    let at = start;
    let value = 0;
    if (buffer[at] === ZERO) return NO;
    for (let digit = buffer[at]!; digit >= ZERO && digit <= NINE && at < start + 9; digit = buffer[++at]!) {
      value = value * 10 + digit - ZERO;
    }
    if (at === start || (buffer[at] !== COMMA && buffer[at] !== BRACE_CLOSE)) return NO;
    this.#fields.globalRank = value;
    return at;
  }

  #pages(start: number, end: number): number {
    const buffer = this.#buffer;
    if (buffer[start] !== BRACE_OPEN) return NO;
    if (buffer[start + 1] === BRACE_CLOSE) return start + 2;
    let at = start;
    do {
      const nameEnd = this.#text(at + 1, end);
      if (nameEnd === NO || buffer[nameEnd + 1] !== 0x3a) return NO;
      const type = this.#types.getHashed(0, this.#hash, buffer, at + 2, nameEnd);
      if (type === NO) return NO;
      const url = nameEnd + 3;
      const close = this.#url(url, end);
      if (close === NO || !this.#addPage(type, url, close)) return NO;
      at = close + 1;
    } while (buffer[at] === COMMA);
    return buffer[at] === BRACE_CLOSE ? at + 1 : NO;
  }

  /** Puts a page in its place; false where its type is there already. */
  #addPage(type: number, start: number, end: number): boolean {
    const fields = this.#fields;
    const { pageTypes: types, pageStarts, pageEnds } = fields;
    let place = fields.pageCount;
    while (place > 0 && types[place - 1]! > type) place -= 1;
    if (place > 0 && types[place - 1] === type) return false;
    for (let i = fields.pageCount; i > place; i--) {
      types[i] = types[i - 1]!;
      pageStarts[i] = pageStarts[i - 1]!;
      pageEnds[i] = pageEnds[i - 1]!;
    }
    types[place] = type;
    pageStarts[place] = start;
    pageEnds[place] = end;
    fields.pageCount += 1;
    return true;
  }

  /** A URL in the URL standard's own spelling, on the line's domain or below it: where its closing quote is. */
  #url(start: number, end: number): number {
    const buffer = this.#buffer;
    let at = this.#originLikeBefore(start) ? start + this.#originSize : this.#origin(start, end);
    if (at === NO) return NO;
    // Here is a slash. A segment that begins with a dot, plain or encoded, may be one of those that the URL parser resolves.
    for (let kind = 2; kind !== 0; kind = TAIL_CLASS[buffer[at]!]!) {
      at += 1;
      if (kind === 2 ? buffer[at] === DOT : buffer[at] === 0x32 && (buffer[at + 1]! | 0x20) === 0x65) return NO;
      while (TAIL_CLASS[buffer[at]!] === 1) at += 1;
    }
    return at < end && buffer[at] === QUOTE && at - start <= PAGE_URL_MAX_BYTES ? at : NO;
  }

  /** True where a URL begins as the one before: a quote, scheme and host, a slash. Most pages of a site do. */
  #originLikeBefore(start: number): boolean {
    const buffer = this.#buffer;
    const size = this.#originSize;
    if (size === 0) return false;
    for (let i = start - 1, j = this.#originStart - 1, to = start + size; i <= to; i++, j++)
      if (buffer[i] !== buffer[j]) return false;
    return true;
  }

  /** Scheme and host of a URL that may be on the line's domain: where the slash behind them is. */
  #origin(start: number, end: number): number {
    const buffer = this.#buffer;
    if (!this.#has(HTTP, start - 1)) return NO;
    const colon = buffer[start + 4] === 0x73 ? start + 5 : start + 4;
    if (buffer[colon] !== 0x3a || buffer[colon + 1] !== SLASH || buffer[colon + 2] !== SLASH) return NO;
    const hostStart = colon + 3;
    const hostEnd = this.#host(hostStart, end);
    if (hostEnd === NO || buffer[hostEnd] !== SLASH || !this.#isOnDomain(hostStart, hostEnd)) return NO;
    this.#originStart = start;
    this.#originSize = hostEnd - start;
    return hostEnd;
  }

  /** True where a host is the line's domain, or below it with no public suffix between. */
  #isOnDomain(start: number, end: number): boolean {
    const buffer = this.#buffer;
    const { domainStart, domainEnd } = this.#fields;
    const below = end - start - (domainEnd - domainStart);
    if (below < 0) return false;
    for (let i = domainStart, j = start + below; i < domainEnd; i++, j++) if (buffer[i] !== buffer[j]) return false;
    if (below === 0) return true;
    if (buffer[start + below - 1] !== DOT) return false;
    const registrable = registrableDomain(buffer.toString('latin1', start, end));
    // The registrable domain is an end of the host; if it is no longer than the key, it is the key's too.
    return registrable !== undefined && registrable.length <= domainEnd - domainStart;
  }
}
