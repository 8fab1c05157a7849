/** The `page_types` of a line, read straight from its bytes: a part of the fast scanner. */
import { registrableDomain } from '../domain/public-suffix.ts';
import type { RecordFields } from '../index/record-fields.ts';
import { PAGE_URL_MAX_BYTES } from '../record/page-urls.ts';
import { pageTypes, type VocabularyScope } from '../record/vocabulary.ts';
import { hasBytes, hostEnd, NO } from './host-bytes.ts';

const QUOTE = 0x22;
const PERCENT = 0x25;
const COMMA = 0x2c;
const DOT = 0x2e;
const SLASH = 0x2f;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const HTTP = Buffer.from('http');
const TYPE_SLOTS = 256;
/** Origins of one line that are remembered. */
const ORIGINS_MAX = 4;

/**
 * Characters after the host that the URL parser leaves as they are are not 0. What may begin a dot segment: of two neighbors, the upper
 * half of the one and the lower half of the other have a bit in common (`/.` and `%2`).
 */
const TAIL_CLASS = new Uint8Array(256);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[A-Za-z0-9_.~!$&()*+,;:=@?#-]/.test(character)) TAIL_CLASS[code] = 0x04;
}
TAIL_CLASS[SLASH] = 0x14;
TAIL_CLASS[DOT] = 0x05;
TAIL_CLASS[PERCENT] = 0x24;
TAIL_CLASS[0x32] = 0x06;

/** What Buffer has, undocumented in its types: `toString('latin1')` without its checks. */
type Sliceable = Buffer & { latin1Slice(start: number, end: number): string };

export class PageScanner {
  /** Where a URL of this line lacks the slash behind its host; `NO` where none does. */
  slashAt = NO;
  readonly #fields: RecordFields;
  /** Page types by the first four bytes of their name, closing quote and colon; then all of its bytes. */
  readonly #typeWords: Int32Array = new Int32Array(TYPE_SLOTS);
  readonly #typeOrdinals: Int8Array = new Int8Array(TYPE_SLOTS).fill(NO);
  readonly #typeTexts: readonly Uint8Array[];
  #buffer: Buffer = Buffer.alloc(0);
  /** Of the buffer's memory: what is at `at` in the buffer is at `at + #viewOffset` there. */
  #view: DataView = new DataView(this.#buffer.buffer);
  #viewOffset = 0;
  #type = 0;
  /** Scheme and host of URLs of this line that were found to be on its domain. */
  readonly #originStarts: Int32Array = new Int32Array(ORIGINS_MAX);
  readonly #originSizes: Int32Array = new Int32Array(ORIGINS_MAX);
  #originCount = 0;

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

  /** Begins a line that is in this buffer. */
  begin(buffer: Buffer): void {
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = new DataView(buffer.buffer);
      this.#viewOffset = buffer.byteOffset;
    }
    this.#originCount = 0;
    this.slashAt = NO;
  }

  /** Reads the object of pages that begins at `start` into the fields: where it ends, or `NO`. */
  scan(start: number, end: number): number {
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
    if (!hasBytes(buffer, HTTP, start)) return NO;
    const colon = buffer[start + 4] === 0x73 ? start + 5 : start + 4;
    if (buffer[colon] !== 0x3a || buffer[colon + 1] !== SLASH || buffer[colon + 2] !== SLASH) return NO;
    const hostStart = colon + 3;
    const behind = hostEnd(buffer, hostStart, end);
    if (behind === NO || !this.#isOnDomain(hostStart, behind)) return NO;
    const next = buffer[behind];
    if (next !== SLASH) {
      if (next === QUOTE || next === 0x3f || next === 0x23) this.slashAt = behind;
      return NO;
    }
    if (this.#originCount < ORIGINS_MAX) {
      this.#originStarts[this.#originCount] = start;
      this.#originSizes[this.#originCount] = behind - start;
      this.#originCount += 1;
    }
    return behind;
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
    const registrable = registrableDomain((buffer as Sliceable).latin1Slice(start, end));
    // The registrable domain is an end of the host; if it is no longer than the key, it is the key's too.
    return registrable !== undefined && registrable.length <= domainEnd - domainStart;
  }
}

function slotOfWord(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> 24;
}
