/** Splits a path in one pass: where its segments are, their names, the token lists of these, and which kinds of characters there are. */
import { DOT, SEMICOLON, SLASH, UNDERSCORE } from '../../bytes/ascii.ts';
import { HASH_PRIME, HASH_SEED } from '../../bytes/fnv.ts';
import { FOLD } from './characters.ts';
import { hasEncoded, isShortest, nextDigits } from './encoded-texts.ts';
import { lastLetterEnd, wholeNameEnd, withoutExtension, withoutNameless, withoutSigns } from './segments.ts';

/** Flags for the characters in a segment. */
export const SEGMENT_HAS = {
  /** A hyphen, underscore or blank, which separate words. */
  separator: 0x200,
  colon: 0x400,
  dot: 0x800,
  /** More than one dot. */
  dots: 0x4000,
  /** A character that may end the name before its extension, a blank, or a character beyond ASCII. */
  odd: 0x1000,
  digit: 0x2000,
  at: 0x8000,
} as const;

/** For each ASCII code, the letter or digit that it folds to in the low byte, and its flags of {@link SEGMENT_HAS}. */
const TABLE = new Uint16Array(128);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  let entry = FOLD[code]!;
  if (/[-_ ]/.test(character)) entry |= SEGMENT_HAS.separator;
  if (/[0-9]/.test(character)) entry |= SEGMENT_HAS.digit;
  if (character === '@') entry |= SEGMENT_HAS.at;
  if (character === ':') entry |= SEGMENT_HAS.colon;
  if (character === '.') entry |= SEGMENT_HAS.dot;
  if (code <= 0x20 || /[;?#&!]/.test(character)) entry |= SEGMENT_HAS.odd;
  TABLE[code] = entry;
}

/** Finds the token lists of a name. */
export interface NameFinder {
  find(text: string, start: number, end: number): readonly number[];
  /** Like `find`, for a name without its extension. */
  findName(text: string, start: number, end: number): readonly number[];
  /** Like `find`, if there is only ASCII and its hash is known. */
  findHashed(hash: number, text: string, start: number, end: number): readonly number[];
}

/**
 * The segments of one path at a time, without what anyone can add to a path and servers ignore: punctuation at its end, extra slashes,
 * segment parameters, and segments without a name. Index files at the end are counted apart. So none of these makes a difference to
 * callers.
 */
export class PathSegments {
  /** The path without what is ignored, but with index files. */
  path = '';
  /** Number of segments without index files at the end. */
  count = 0;
  /** Number of segments including index files. Array entries beyond this are stale. */
  allCount = 0;
  /** Flags of {@link SEGMENT_HAS} for the whole path. */
  signs = 0;
  /** Start and end offset of each segment. No segment is empty. */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** End offset of each segment's name, before an extension. */
  readonly stops: number[] = [];
  /** Flags of {@link SEGMENT_HAS} for each segment. */
  readonly bits: number[] = [];
  /** Offset of the last dot of each segment; -1 if it has none. */
  readonly dots: number[] = [];
  /** Offsets of all characters that are not ASCII letters or digits, slashes included. Only the first `partsCount` entries are valid. */
  readonly parts: number[] = [];
  partsCount = 0;
  /** Token lists of each segment's name. */
  readonly lists: (readonly number[])[] = [];
  /** Whether something was removed between segments, or more than one character at the end. */
  isCut = false;
  /** The path as it was given. */
  whole = '';
  /** Whether that path may hold a text in base64 or hexadecimal. */
  hasEncoded = false;
  /** What {@link nextDigits} returned for the last character of `path`. */
  #digits = 0;
  /** Hash of the whole last segment. */
  #lastHash = 0;
  readonly #names: NameFinder;

  readonly #index: number;

  /** @param index the token list of files that stand for their folder */
  constructor(names: NameFinder, index: number) {
    this.#names = names;
    this.#index = index;
  }

  /** Splits a path, unless it is the one that was split last. */
  read(whole: string): this {
    if (whole !== this.whole) {
      this.whole = whole;
      const path = withoutSigns(whole);
      this.isCut = path.length + 1 < whole.length;
      if (!this.#split(path)) {
        const named = withoutSigns(withoutNameless(path));
        if (named !== path) {
          this.isCut = true;
          this.#split(named);
        }
      }
      if (this.path !== path) this.hasEncoded = hasEncoded(whole);
      else
        for (let at = path.length, digits = this.#digits; at < whole.length; at++) {
          digits = nextDigits(digits, whole.charCodeAt(at));
          this.hasEncoded ||= isShortest(digits);
        }
      this.count = this.allCount;
      while (this.count > 0 && this.#isLeftOut(this.count - 1)) this.count--;
    }
    return this;
  }

  /** End offset of the last segment that is not an index file. */
  get end(): number {
    return this.count === 0 ? 0 : this.ends[this.count - 1]!;
  }

  /** Returns the token lists of the last segment, extension included. */
  listsOfLastFile(): readonly number[] {
    const last = this.allCount - 1;
    const [start, end] = [this.starts[last]!, this.ends[last]!];
    const isPlain = (this.bits[last]! & SEGMENT_HAS.odd) === 0 && !isLed(this.path.charCodeAt(start));
    return isPlain
      ? this.#names.findHashed(this.#lastHash, this.path, start, end)
      : this.#names.find(this.path, start, end);
  }

  /** Whether a segment at the end of the path is an index file, or has only punctuation and comes before one. */
  #isLeftOut(at: number): boolean {
    const { path, starts, ends } = this;
    const lists = this.lists[at]!;
    if (lists.length > 0 && lists.includes(this.#index)) return true;
    return at + 1 < this.allCount && lastLetterEnd(path, starts[at]!, ends[at]!) === starts[at];
  }

  /** Splits a path as it is. Returns false if it may have parts that must be removed first: segment parameters, or segments without a name. */
  #split(path: string): boolean {
    let isNamed = true;
    this.path = path;
    this.allCount = 0;
    this.signs = 0;
    let start = 0;
    let hash = HASH_SEED;
    let dotHash = 0;
    let bits = 0;
    let dot = -1;
    let parts = 0;
    let digits = 0;
    let isEncoded = false;
    const { length } = path;
    for (let at = 0; at < length; at++) {
      const code = path.charCodeAt(at);
      digits = nextDigits(digits, code);
      isEncoded ||= isShortest(digits);
      const entry = code < 128 ? TABLE[code]! : SEGMENT_HAS.odd;
      const folded = entry & 0xff;
      bits |= entry;
      if (folded !== 0) {
        hash = Math.imul(hash ^ folded, HASH_PRIME);
        continue;
      }
      this.parts[parts++] = at;
      if (code === DOT) {
        if (dot >= start) bits |= SEGMENT_HAS.dots;
        dot = at;
        dotHash = hash;
      } else if (code === SLASH) {
        if (at > start) this.#add(start, at, bits, dot, hash, dotHash);
        // Without ASCII letters and digits it may be a name in another script, or invisible: the caller looks closer.
        isNamed &&= hash !== HASH_SEED || at === 0;
        start = at + 1;
        hash = HASH_SEED;
        bits = 0;
        dot = -1;
      } else if (code === SEMICOLON) isNamed = false;
    }
    if (length > start) this.#add(start, length, bits, dot, hash, dotHash);
    this.parts[parts++] = length;
    this.partsCount = parts;
    this.hasEncoded = isEncoded;
    this.#digits = digits;
    return isNamed;
  }

  #add(start: number, end: number, bits: number, dot: number, hash: number, dotHash: number): void {
    const { path } = this;
    const at = this.allCount++;
    this.starts[at] = start;
    this.ends[at] = end;
    this.bits[at] = bits;
    this.dots[at] = dot;
    this.signs |= bits;
    this.#lastHash = hash;
    if ((bits & SEGMENT_HAS.odd) !== 0 || dot === end - 1 || isLed(path.charCodeAt(start))) {
      const stop = wholeNameEnd(path, start, end);
      this.stops[at] = stop;
      this.lists[at] = this.#names.findName(path, start, stop);
      return;
    }
    const stop = dot > start ? withoutExtension(path, dot, end) : end;
    this.stops[at] = stop;
    // The name may have an extension of another kind of file before this one: `login.ts.bak`.
    if (stop < end && (bits & SEGMENT_HAS.dots) === 0)
      this.lists[at] = this.#names.findHashed(dotHash, path, start, stop);
    else if (dot > start) this.lists[at] = this.#names.findName(path, start, stop);
    else this.lists[at] = this.#names.findHashed(hash, path, start, end);
  }
}

/** Whether a name begins with a dot or underscore, as special files and fields do. */
function isLed(code: number): boolean {
  return code === DOT || code === UNDERSCORE;
}
