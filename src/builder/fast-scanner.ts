/**
 * Reads the lines that a careful vendor writes, straight from bytes to fields: compact JSON, `domain` first, every value in the form
 * the index keeps, but for the two most frequent repairs. It understands a line entirely or not at all: `scan` says false for whatever
 * it does not know, good or bad, and parseEntry decides. Where it says true, parseEntry finds the same entry, the same repairs and no
 * rejects; a fuzz test holds it to that.
 */
import { isPublicSuffix, registrableDomain } from '../domain/public-suffix.ts';
import { ByteMap } from '../index/byte-map.ts';
import type { RecordFields } from '../index/record-fields.ts';
import { LINE_MAX_BYTES } from '../record/entry.ts';
import type { Repair } from '../record/findings.ts';
import { languages } from '../record/languages.ts';
import { PAGE_URL_MAX_BYTES } from '../record/page-urls.ts';
import { filteringTaxonomy, iabCategories } from '../record/taxonomy.ts';
import { pageTypes, type VocabularyScope } from '../record/vocabulary.ts';

const QUOTE = 0x22;
const PERCENT = 0x25;
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
/**
 * Characters after the host that the URL parser leaves as they are are not 0. What may begin a dot segment: of two neighbors, the upper
 * half of the one and the lower half of the other have a bit in common (`/.` and `%2`).
 */
const TAIL_CLASS = new Uint8Array(256);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) HOST_CLASS[code] = 1;
  if (/[0-9_]/.test(character)) HOST_CLASS[code] = 2;
  if (/[A-Za-z0-9_.~!$&()*+,;:=@?#-]/.test(character)) TAIL_CLASS[code] = 0x04;
}
HOST_CLASS[HYPHEN] = 3;
HOST_CLASS[DOT] = 4;
TAIL_CLASS[SLASH] = 0x14;
TAIL_CLASS[DOT] = 0x05;
TAIL_CLASS[PERCENT] = 0x24;
TAIL_CLASS[0x32] = 0x06;

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
const HTTP = Buffer.from('http');

/** Repairs of one line that are made here; more of them are left to the slow reader. */
const REPAIRS_MAX = 64;
const TYPE_SLOTS = 256;
/** Origins of one line that are remembered. */
const ORIGINS_MAX = 4;

export class FastScanner {
  /** What was put right on the line scanned last. */
  readonly repairs: Repair[] = [];
  readonly #fields: RecordFields;
  /** Page types by the first four bytes of their name, closing quote and colon; then all of its bytes. */
  readonly #typeWords: Int32Array = new Int32Array(TYPE_SLOTS);
  readonly #typeOrdinals: Int8Array = new Int8Array(TYPE_SLOTS).fill(NO);
  readonly #typeTexts: readonly Uint8Array[];
  /** A line that was changed. */
  readonly #scratch: Buffer = Buffer.alloc(LINE_MAX_BYTES + REPAIRS_MAX + 8);
  #buffer: Buffer = this.#scratch;
  /** Of the buffer's memory: what is at `at` in the buffer is at `at + #viewOffset` there. */
  #view: DataView = new DataView(this.#scratch.buffer);
  #viewOffset = 0;
  #hash = 0;
  #type = 0;
  /** Scheme and host of URLs of this line that were found to be on its domain. */
  readonly #originStarts: Int32Array = new Int32Array(ORIGINS_MAX);
  readonly #originSizes: Int32Array = new Int32Array(ORIGINS_MAX);
  #originCount = 0;
  /** Where a URL lacks the slash behind its host; `NO` where none does. */
  #slashAt = NO;

  /** Fills these fields; the ranges are in the fields' source. */
  constructor(fields: RecordFields, scope: VocabularyScope) {
    this.#fields = fields;
    this.#typeTexts = pageTypes(scope).map(({ name }) => Buffer.from(`${name}":"`));
    this.#typeTexts.forEach((text, ordinal) => {
      const word = text[0]! | (text[1]! << 8) | (text[2]! << 16) | (text[3]! << 24);
      let slot = slotOfWord(word);
      while (this.#typeOrdinals[slot] !== NO) slot = (slot + 1) % TYPE_SLOTS;
      this.#typeWords[slot] = word;
      this.#typeOrdinals[slot] = ordinal;
    });
  }

  /**
   * Reads the line `buffer[start, end)`. True where the fields are filled, valid as long as the buffer is and until the next call; false
   * where somebody else must read it.
   */
  scan(buffer: Buffer, start: number, end: number): boolean {
    if (this.repairs.length > 0) this.repairs.length = 0;
    if (this.#scanOnce(buffer, start, end)) return true;
    let size = end - start;
    while (this.#slashAt !== NO && this.repairs.length < REPAIRS_MAX && size <= LINE_MAX_BYTES) {
      size = this.#insertSlash(size, start);
      this.repairs.length = 0;
      if (this.#scanOnce(this.#scratch, 0, size)) {
        for (let inserted = size - (end - start); inserted > 0; inserted--) this.repairs.push('page_url_canonicalized');
        return true;
      }
    }
    return false;
  }

  /** The line, a slash put where one lacks, in the scratch buffer; returns its size. */
  #insertSlash(size: number, start: number): number {
    const from = this.#buffer;
    const lineStart = from === this.#scratch ? 0 : start;
    const at = this.#slashAt - lineStart;
    from.copy(this.#scratch, at + 1, lineStart + at, lineStart + size);
    if (from !== this.#scratch) from.copy(this.#scratch, 0, lineStart, lineStart + at);
    this.#scratch[at] = SLASH;
    return size + 1;
  }

  #scanOnce(buffer: Buffer, start: number, end: number): boolean {
    const fields = this.#fields;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = new DataView(buffer.buffer);
      this.#viewOffset = buffer.byteOffset;
    }
    this.#originCount = 0;
    this.#slashAt = NO;
    if (end - start < START.length + 4 || buffer[end - 1] !== BRACE_CLOSE || !this.#has(START, start)) return false;
    fields.clear();
    fields.source = buffer;
    fields.domainStart = start + START.length;
    let at = this.#host(fields.domainStart, end);
    if (at === NO || buffer[at] !== QUOTE) return false;
    fields.domainEnd = at;
    if (this.#startsWithWww(fields.domainStart) && !this.#stripWww()) return false;
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

  /** As the domain room does it; false where a `www.` stays, because what follows is a suffix or a single label. */
  #stripWww(): boolean {
    const fields = this.#fields;
    const buffer = this.#buffer;
    while (this.#startsWithWww(fields.domainStart)) {
      const rest = buffer.toString('latin1', fields.domainStart + 4, fields.domainEnd);
      if (!rest.includes('.') || isPublicSuffix(rest, { private: false })) return false;
      fields.domainStart += 4;
    }
    this.repairs.push('domain_www_stripped');
    return true;
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
    const fields = this.#fields;
    if (buffer[start] !== BRACE_OPEN) return NO;
    if (buffer[start + 1] === BRACE_CLOSE) return start + 2;
    let at = start;
    let last = NO;
    do {
      const url = this.#typeName(at + 1, end);
      if (url === NO) return NO;
      const close = this.#url(url, end);
      if (close === NO) return NO;
      const type = this.#type;
      if (type > last) {
        fields.addPage(type, url, close);
        last = type;
      } else if (!this.#insertPage(type, url, close)) return NO;
      at = close + 1;
    } while (buffer[at] === COMMA);
    return buffer[at] === BRACE_CLOSE ? at + 1 : NO;
  }

  /** The name of a page type, from its opening quote to the URL's: where the URL begins. */
  #typeName(at: number, end: number): number {
    const buffer = this.#buffer;
    if (at + 5 > end || buffer[at] !== QUOTE) return NO;
    const word = this.#view.getInt32(at + 1 + this.#viewOffset, true);
    for (let slot = slotOfWord(word); ; slot = (slot + 1) % TYPE_SLOTS) {
      const ordinal = this.#typeOrdinals[slot]!;
      if (ordinal === NO) return NO;
      if (this.#typeWords[slot] !== word) continue;
      const text = this.#typeTexts[ordinal]!;
      let i = 4;
      while (i < text.length && text[i] === buffer[at + 1 + i]) i += 1;
      if (i < text.length) continue;
      this.#type = ordinal;
      return at + 1 + text.length;
    }
  }

  /** Puts a page that comes out of order in its place; false where its type is there already. */
  #insertPage(type: number, start: number, end: number): boolean {
    const fields = this.#fields;
    const { pageTypes: types, pageStarts, pageEnds } = fields;
    let place = fields.pageCount;
    while (place > 0 && types[place - 1]! > type) place -= 1;
    if (place > 0 && types[place - 1] === type) return false;
    fields.addPage(type, start, end);
    for (let i = fields.pageCount - 1; i > place; i--) {
      types[i] = types[i - 1]!;
      pageStarts[i] = pageStarts[i - 1]!;
      pageEnds[i] = pageEnds[i - 1]!;
    }
    types[place] = type;
    pageStarts[place] = start;
    pageEnds[place] = end;
    return true;
  }

  /** A URL in the URL standard's own spelling, on the line's domain or below it: where its closing quote is. */
  #url(start: number, end: number): number {
    const buffer = this.#buffer;
    let at = this.#knownOrigin(start, end);
    if (at === NO) at = this.#origin(start, end);
    if (at === NO) return NO;
    // Here is a slash. One branch for each byte: what has to be looked at again is only noted.
    const pathStart = at;
    let before = TAIL_CLASS[SLASH]!;
    let suspect = 0;
    at += 1;
    for (let kind = TAIL_CLASS[buffer[at]!]!; kind !== 0; kind = TAIL_CLASS[buffer[at]!]!) {
      suspect |= (before >>> 4) & kind;
      before = kind;
      at += 1;
    }
    if (suspect !== 0 && this.#hasDotSegment(pathStart, at)) return NO;
    return at < end && buffer[at] === QUOTE && at - start <= PAGE_URL_MAX_BYTES ? at : NO;
  }

  /** True where a segment begins with a dot, plain or encoded: it may be one of those that the URL parser resolves. */
  #hasDotSegment(start: number, end: number): boolean {
    const buffer = this.#buffer;
    for (let at = start; at < end; at++) {
      if (buffer[at] === SLASH && buffer[at + 1] === DOT) return true;
      if (buffer[at] === PERCENT && buffer[at + 1] === 0x32 && (buffer[at + 2]! | 0x20) === 0x65) return true;
    }
    return false;
  }

  /** Where the slash behind scheme and host is, if the URL begins as one before on this line. Most pages of a site do. */
  #knownOrigin(start: number, end: number): number {
    const view = this.#view;
    const offset = this.#viewOffset;
    for (let i = 0; i < this.#originCount; i++) {
      const size = this.#originSizes[i]!;
      if (start + size >= end) continue;
      // Size and slash are at least 8 bytes. Four at a time; the last four, which differ most, overlap the ones before.
      const last = start + size - 3 + offset;
      const distance = this.#originStarts[i]! - start;
      if (view.getInt32(last, true) !== view.getInt32(last + distance, true)) continue;
      let at = start + offset;
      while (at < last && view.getInt32(at, true) === view.getInt32(at + distance, true)) at += 4;
      if (at >= last) return start + size;
    }
    return NO;
  }

  /** Scheme and host of a URL that may be on the line's domain: where the slash behind them is. */
  #origin(start: number, end: number): number {
    const buffer = this.#buffer;
    if (!this.#has(HTTP, start)) return NO;
    const colon = buffer[start + 4] === 0x73 ? start + 5 : start + 4;
    if (buffer[colon] !== 0x3a || buffer[colon + 1] !== SLASH || buffer[colon + 2] !== SLASH) return NO;
    const hostStart = colon + 3;
    const hostEnd = this.#host(hostStart, end);
    if (hostEnd === NO || !this.#isOnDomain(hostStart, hostEnd)) return NO;
    const next = buffer[hostEnd];
    if (next !== SLASH) {
      if (next === QUOTE || next === 0x3f || next === 0x23) this.#slashAt = hostEnd;
      return NO;
    }
    if (this.#originCount < ORIGINS_MAX) {
      this.#originStarts[this.#originCount] = start;
      this.#originSizes[this.#originCount] = hostEnd - start;
      this.#originCount += 1;
    }
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

function slotOfWord(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> 24;
}
