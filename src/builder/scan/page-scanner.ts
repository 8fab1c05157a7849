/** The part of the fast scanner that reads the `page_types` of a line directly from its bytes. */

import { ByteKey, ByteMap, NOT_FOUND } from '../../bytes/byte-map.ts';
import { registrableDomain } from '../../domain/public-suffix.ts';
import { SuffixBranches } from '../../domain/suffix-filter.ts';
import {
  type Dictionary,
  INHERITED_ORIGIN,
  NO_TEMPLATE,
  type RecordFields,
  TEMPLATE_UNKNOWN,
} from '../../index/write.ts';
import { PAGE_URL_MAX_BYTES } from '../../record/page-urls.ts';
import { pageTypes, type VocabularyScope } from '../../record/vocabulary.ts';
import { FixedText, hostEnd, lastLabelsStart } from './host-bytes.ts';

const QUOTE = 0x22;
const PERCENT = 0x25;
const COMMA = 0x2c;
const DOT = 0x2e;
const SLASH = 0x2f;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const HTTP = new FixedText('http://');
const HTTPS = new FixedText('https://');
const TYPE_SLOTS = 256;

/**
 * Classes of the characters after the host: 0 if the URL parser may change the character. Two adjacent characters may begin a dot segment
 * (`/.` and `%2`) if the upper half of the first's class and the lower half of the second's have a bit in common.
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

/** A method of Buffer that its types lack: `toString('latin1')` without the checks. */
type Sliceable = Buffer & { latin1Slice(start: number, end: number): string };

/** Scans the pages of lines, one line at a time. */
export class PageScanner {
  /** Where the slash after the host of a URL is missing in this line; `NOT_FOUND` if no slash is missing. */
  slashAt = NOT_FOUND;
  readonly #fields: RecordFields;
  /** Hash table of the page types by the first four bytes of name, closing quote, colon and opening quote; `#typeTexts` has all bytes. */
  readonly #typeWords: Int32Array = new Int32Array(TYPE_SLOTS);
  readonly #typeOrdinals: Int8Array = new Int8Array(TYPE_SLOTS).fill(NOT_FOUND);
  readonly #typeTexts: readonly FixedText[];
  /** Path templates of the dictionary by page type and path. `templateTable` defines the values. */
  readonly #pathTemplates: ByteMap;
  readonly #unknownTemplate: number;
  readonly #path = new ByteKey();
  readonly #suffixes = new SuffixBranches();
  #type = 0;
  #origin = 0;
  #template = 0;

  /** @param pathTemplates must be those of the dictionary that the fields are encoded with. Without them, no template is looked up. */
  constructor(fields: RecordFields, scope: VocabularyScope, pathTemplates?: Dictionary['pathTemplates']) {
    this.#fields = fields;
    this.#typeTexts = pageTypes(scope).map(({ name }) => new FixedText(`${name}":"`));
    this.#typeTexts.forEach(({ firstWord }, ordinal) => {
      let slot = slotOfWord(firstWord);
      while (this.#typeOrdinals[slot] !== NOT_FOUND) slot = (slot + 1) % TYPE_SLOTS;
      this.#typeWords[slot] = firstWord;
      this.#typeOrdinals[slot] = ordinal;
    });
    this.#pathTemplates = templateTable(pathTemplates ?? []);
    this.#unknownTemplate = pathTemplates === undefined ? TEMPLATE_UNKNOWN : NO_TEMPLATE;
  }

  /** Begins a line. */
  begin(): void {
    this.slashAt = NOT_FOUND;
  }

  /** Scans the object of pages at `start` into the fields. Returns its end, or `NOT_FOUND`. */
  scan(start: number, end: number): number {
    const fields = this.#fields;
    const { source } = fields;
    if (source[start] !== BRACE_OPEN) return NOT_FOUND;
    if (source[start + 1] === BRACE_CLOSE) return start + 2;
    let at = start;
    do {
      const url = this.#typeName(at + 1, end);
      if (url === NOT_FOUND) return NOT_FOUND;
      let path = this.#knownOrigin(url, end);
      if (path === NOT_FOUND) path = this.#newOrigin(url, end);
      if (path === NOT_FOUND) return NOT_FOUND;
      const close = this.#pathEnd(path, end);
      if (close === NOT_FOUND || close - url > PAGE_URL_MAX_BYTES) return NOT_FOUND;
      if (!fields.addPage(this.#type, url, close, this.#origin, this.#template)) return NOT_FOUND;
      at = close + 1;
    } while (source[at] === COMMA);
    return source[at] === BRACE_CLOSE ? at + 1 : NOT_FOUND;
  }

  /** Scans the name of a page type, from its opening quote to the opening quote of the URL. Returns the start of the URL, or `NOT_FOUND`. */
  #typeName(at: number, end: number): number {
    const { source, view } = this.#fields;
    if (at + 5 > end || source[at] !== QUOTE) return NOT_FOUND;
    const word = view.getInt32(at + 1, true);
    for (let slot = slotOfWord(word); ; slot = (slot + 1) % TYPE_SLOTS) {
      const ordinal = this.#typeOrdinals[slot]!;
      if (ordinal === NOT_FOUND) return NOT_FOUND;
      if (this.#typeWords[slot] !== word) continue;
      const text = this.#typeTexts[ordinal]!;
      if (!text.isAt(view, at + 1, end)) continue;
      this.#type = ordinal;
      return at + 1 + text.size;
    }
  }

  /** Returns the end of the path at `start`, which is its closing quote, or `NOT_FOUND` if the path is not canonical. It begins with a slash. */
  #pathEnd(start: number, end: number): number {
    const { view } = this.#fields;
    const path = this.#path;
    const close = path.takeQuoted(view, start, end);
    if (close === NOT_FOUND) return NOT_FOUND;
    const template = this.#pathTemplates.get(this.#type, path);
    this.#template = template < 0 ? this.#unknownTemplate : template >> 1;
    return (template >= 0 && (template & 1) === 1) || isCanonicalPath(this.#fields.source, start, close)
      ? close
      : NOT_FOUND;
  }

  /** Returns the end of scheme and host if an earlier URL of this line has the same, otherwise `NOT_FOUND`. Most pages of a site do. */
  #knownOrigin(start: number, end: number): number {
    const { view, originStarts, originSizes, originCount, domainStart, domainEnd } = this.#fields;
    for (let i = 0; i < originCount; i++) {
      const size = originSizes[i]! + domainEnd - domainStart;
      if (start + size >= end) continue;
      // Scheme, host and slash have at least 8 bytes. Compare four at a time, first the last four: they differ most, and may overlap others.
      const last = start + size - 3;
      const distance = originStarts[i]! - start;
      if (view.getInt32(last, true) !== view.getInt32(last + distance, true)) continue;
      let at = start;
      while (at < last && view.getInt32(at, true) === view.getInt32(at + distance, true)) at += 4;
      if (at < last) continue;
      this.#origin = i;
      return start + size;
    }
    return NOT_FOUND;
  }

  /** Adds scheme and host of a URL on the line's domain as a new origin. Returns their end, or `NOT_FOUND`. */
  #newOrigin(start: number, end: number): number {
    const fields = this.#fields;
    const { source, view, domainStart, domainEnd } = fields;
    const scheme = HTTPS.isAt(view, start, end) ? HTTPS : HTTP;
    if (scheme === HTTP && !HTTP.isAt(view, start, end)) return NOT_FOUND;
    const hostStart = start + scheme.size;
    const originEnd = hostEnd(source, hostStart, end);
    if (originEnd === NOT_FOUND || !this.#isOnDomain(hostStart, originEnd)) return NOT_FOUND;
    const next = source[originEnd];
    if (next !== SLASH) {
      if (next === QUOTE || next === 0x3f || next === 0x23) this.slashAt = originEnd;
      return NOT_FOUND;
    }
    if (fields.originCount === fields.originStarts.length) return NOT_FOUND;
    this.#origin = fields.addOrigin(start, originEnd - start - (domainEnd - domainStart));
    return originEnd;
  }

  /** True if a host is the line's domain, or a subdomain of it with no public suffix in between. */
  #isOnDomain(start: number, end: number): boolean {
    const { source, view, domainStart, domainEnd } = this.#fields;
    const below = end - start - (domainEnd - domainStart);
    // The comparison needs at least four bytes. The last four, compared first, may overlap the ones before.
    if (below < 0 || domainEnd - domainStart < 4) return false;
    const distance = end - domainEnd;
    if (view.getInt32(domainEnd - 4, true) !== view.getInt32(end - 4, true)) return false;
    for (let at = domainStart; at < domainEnd - 4; at += 4) {
      if (view.getInt32(at, true) !== view.getInt32(at + distance, true)) return false;
    }
    if (below === 0) return true;
    if (source[start + below - 1] !== DOT) return false;
    if (this.#suffixes.endAbove(source, view, lastLabelsStart(source, start, end), end)) return true;
    const registrable = registrableDomain((source as Sliceable).latin1Slice(start, end));
    // The registrable domain is a suffix of the host. If it is not longer than the line's domain, it is also that domain's.
    return registrable !== undefined && registrable.length <= domainEnd - domainStart;
  }
}

function slotOfWord(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> 24;
}

/**
 * True if the URL parser does not change the path `source[start, close)`, which begins with a slash. To have only one branch for each byte,
 * the loop just notes a possible dot segment; `hasDotSegment` then checks.
 */
function isCanonicalPath(source: Uint8Array, start: number, close: number): boolean {
  let previous = TAIL_CLASS[SLASH]!;
  let suspect = 0;
  for (let at = start + 1; at < close; at++) {
    const kind = TAIL_CLASS[source[at]!]!;
    if (kind === 0) return false;
    suspect |= (previous >>> 4) & kind;
    previous = kind;
  }
  return suspect === 0 || !hasDotSegment(source, start, close);
}

/** True if a segment may be a dot segment, plain or encoded, which the URL parser resolves. `.well-known` is not one. */
function hasDotSegment(source: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (source[at] === SLASH && source[at + 1] === DOT && !isLetter(source[at + 2]!)) return true;
    if (source[at] === PERCENT && source[at + 1] === 0x32 && (source[at + 2]! | 0x20) === 0x65) return true;
  }
  return false;
}

function isLetter(byte: number): boolean {
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Maps page type and path of each template without an origin of its own to twice its number, plus 1 if the path is canonical. */
function templateTable(pathTemplates: Dictionary['pathTemplates']): ByteMap {
  return new ByteMap(
    pathTemplates.flatMap((ofType, tag) =>
      ofType.flatMap(({ origin, path }, number) => {
        const bytes = Buffer.from(path, 'latin1');
        const isCanonical = bytes[0] === SLASH && isCanonicalPath(bytes, 0, bytes.length);
        return origin === INHERITED_ORIGIN ? [{ tag, text: path, value: 2 * number + (isCanonical ? 1 : 0) }] : [];
      }),
    ),
  );
}
