/** A path, taken apart in one pass: where its segments stand, their names, the token lists of these, and what signs there are. */
import { DOT, SLASH, UNDERSCORE } from '../../bytes/ascii.ts';
import { FOLD, HASH_PRIME, HASH_SEED } from './characters.ts';
import { isNameless, nameEnd, withoutExtension, withoutLooseSigns } from './segments.ts';

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
  /** The same of a name, as {@link nameEnd} cuts it out. */
  findName(text: string, start: number, end: number): readonly number[];
  /** The same as `find`, where nothing but ASCII stands there, and its hash is known. */
  findHashed(hash: number, text: string, start: number, end: number): readonly number[];
}

/** The segments of one path at a time. What is behind `count` is old. */
export class PathSegments {
  /**
   * Up to its last letter or digit, as {@link withoutLooseSigns} says, and without a last segment that has no name before its query (`/login/&x=1`):
   * what anyone can put behind that makes no difference to who reads the segments.
   */
  path = '';
  count = 0;
  /** Bits of {@link SEGMENT_HAS} of the whole path. */
  signs = 0;
  /** Where segments begin and end. None is empty. */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** Where their names end, see {@link nameEnd}; at the start where there is none. */
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
  #whole: string | undefined;
  /** Of the last segment: the hash of all of it. */
  #lastHash = 0;
  readonly #names: NameFinder;

  constructor(names: NameFinder) {
    this.#names = names;
  }

  /** Reads a path, unless it is the one that was read last. */
  read(whole: string): this {
    if (whole !== this.#whole) {
      this.#whole = whole;
      this.#read(withoutLooseSigns(whole));
    }
    return this;
  }

  /** Whether more than a slash was left out at the end. */
  get isCut(): boolean {
    return this.path.length + 1 < this.#whole!.length;
  }

  /** Token lists of the last segment, extension and all. */
  listsOfLastFile(): readonly number[] {
    const last = this.count - 1;
    const [start, end] = [this.starts[last]!, this.ends[last]!];
    const isPlain = (this.bits[last]! & SEGMENT_HAS.odd) === 0 && !isLed(this.path.charCodeAt(start));
    return isPlain
      ? this.#names.findHashed(this.#lastHash, this.path, start, end)
      : this.#names.find(this.path, start, end);
  }

  #read(path: string): void {
    this.path = path;
    this.count = 0;
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
        start = at + 1;
        hash = HASH_SEED;
        bits = 0;
        dot = -1;
      }
    }
    this.partsCount = parts;
    if ((this.bits[this.count - 1]! & SEGMENT_HAS.odd) !== 0) this.#cutNameless();
  }

  /** Leaves the last segments out that have no name, all but the first one. */
  #cutNameless(): void {
    const { path, starts, ends } = this;
    let named = this.count;
    while (named > 1 && isNameless(path, starts[named - 1]!, ends[named - 1]!)) named--;
    if (named < this.count) this.#read(withoutLooseSigns(path.slice(0, ends[named - 1])));
  }

  #add(start: number, end: number, bits: number, dot: number, hash: number, dotHash: number): void {
    const { path } = this;
    const at = this.count++;
    this.starts[at] = start;
    this.ends[at] = end;
    this.bits[at] = bits;
    this.dots[at] = dot;
    this.signs |= bits;
    this.#lastHash = hash;
    if ((bits & SEGMENT_HAS.odd) !== 0 || dot === end - 1 || isLed(path.charCodeAt(start))) {
      const stop = nameEnd(path, start, end);
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
