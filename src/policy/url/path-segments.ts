/** A path, taken apart in one pass: where its segments stand, their names, the token lists of these, and what signs there are. */
import { DOT, SEMICOLON, SLASH, UNDERSCORE } from '../../bytes/ascii.ts';
import { FOLD, HASH_PRIME, HASH_SEED } from './characters.ts';
import { lastLetterEnd, wholeNameEnd, withoutExtension, withoutNameless, withoutSigns } from './segments.ts';

/** What characters stand in a segment, as bits. */
export const SEGMENT_HAS = {
  /** Hyphen, underscore or blank, which stand between words. */
  separator: 0x200,
  colon: 0x400,
  dot: 0x800,
  /** More than one dot. */
  dots: 0x4000,
  /** A sign that may end the name before its extension, a blank, or a letter beyond ASCII. */
  odd: 0x1000,
  digit: 0x2000,
  at: 0x8000,
} as const;

/** For each ASCII code what it folds to, in the low byte, and its bits of {@link SEGMENT_HAS}. */
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

/** What tells the token lists of a name. */
export interface NameFinder {
  find(text: string, start: number, end: number): readonly number[];
  /** The same of a name without its extension. */
  findName(text: string, start: number, end: number): readonly number[];
  /** The same as `find`, where nothing but ASCII stands there, and its hash is known. */
  findHashed(hash: number, text: string, start: number, end: number): readonly number[];
}

/**
 * The segments of one path at a time, without what anyone can add to it and the server leaves out: signs at its end, slashes, parameters of
 * segments, segments without a name, and index files at its end. So none of that makes a difference to who reads the segments.
 */
export class PathSegments {
  /** Without all that, but for index files. */
  path = '';
  /** How many segments there are without the index files. */
  count = 0;
  /** How many there are with them; what is behind is old. */
  allCount = 0;
  /** Bits of {@link SEGMENT_HAS} of the whole path. */
  signs = 0;
  /** Where segments begin and end. None is empty. */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** Where their names end, before an extension. */
  readonly stops: number[] = [];
  /** Bits of {@link SEGMENT_HAS}. */
  readonly bits: number[] = [];
  /** Where the last dot stands; -1 where there is none. */
  readonly dots: number[] = [];
  /** Where no letter and no digit of ASCII stands, slashes included; what is behind `partsCount` is old. */
  readonly parts: number[] = [];
  partsCount = 0;
  /** Token lists of the names. */
  readonly lists: (readonly number[])[] = [];
  /** Whether something was left out between the segments, or more than a slash at the end. */
  isCut = false;
  /** As it stood. */
  whole = '';
  /** Of the last segment: the hash of all of it. */
  #lastHash = 0;
  readonly #names: NameFinder;

  readonly #index: number;

  /** `index`: the token list of files that stand for their folder. */
  constructor(names: NameFinder, index: number) {
    this.#names = names;
    this.#index = index;
  }

  /** Reads a path, unless it is the one that was read last. */
  read(whole: string): this {
    if (whole !== this.whole) {
      this.whole = whole;
      const path = withoutSigns(whole);
      this.isCut = path.length + 1 < whole.length;
      if (!this.#read(path)) {
        const named = withoutSigns(withoutNameless(path));
        if (named !== path) {
          this.isCut = true;
          this.#read(named);
        }
      }
      this.count = this.allCount;
      while (this.count > 0 && this.#isLeftOut(this.count - 1)) this.count--;
    }
    return this;
  }

  /** Where the last segment ends that is no index file. */
  get end(): number {
    return this.count === 0 ? 0 : this.ends[this.count - 1]!;
  }

  /** Token lists of the last segment, extension and all. */
  listsOfLastFile(): readonly number[] {
    const last = this.allCount - 1;
    const [start, end] = [this.starts[last]!, this.ends[last]!];
    const isPlain = (this.bits[last]! & SEGMENT_HAS.odd) === 0 && !isLed(this.path.charCodeAt(start));
    return isPlain
      ? this.#names.findHashed(this.#lastHash, this.path, start, end)
      : this.#names.find(this.path, start, end);
  }

  /** Whether a segment at the end of the path stands for its folder, or is nothing but signs before one that does. */
  #isLeftOut(at: number): boolean {
    const { path, starts, ends } = this;
    if (this.lists[at]!.includes(this.#index)) return true;
    return at + 1 < this.allCount && lastLetterEnd(path, starts[at]!, ends[at]!) === starts[at];
  }

  /** Returns whether nothing has to be left out of it. */
  #read(path: string): boolean {
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
    for (let at = 0; at <= path.length; at++) {
      const code = at < path.length ? path.charCodeAt(at) : SLASH;
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
        // Letters beyond ASCII are a name, but what is invisible is not.
        isNamed &&= hash !== HASH_SEED || at === 0 || at === path.length;
        start = at + 1;
        hash = HASH_SEED;
        bits = 0;
        dot = -1;
      } else if (code === SEMICOLON) isNamed = false;
    }
    this.partsCount = parts;
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
    // Before the extension may stand one of a file of another kind: `login.ts.bak`.
    if (stop < end && (bits & SEGMENT_HAS.dots) === 0)
      this.lists[at] = this.#names.findHashed(dotHash, path, start, stop);
    else if (dot > start) this.lists[at] = this.#names.findName(path, start, stop);
    else this.lists[at] = this.#names.findHashed(hash, path, start, end);
  }
}

/** Whether a name begins with the sign of files and fields of their own kind. */
function isLed(code: number): boolean {
  return code === DOT || code === UNDERSCORE;
}
