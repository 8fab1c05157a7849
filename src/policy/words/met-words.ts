/** Which token lists the words of a URL are in, and where in the URL these words occur. */
import type { TokenIndex } from './tokens.ts';
import { POSITION } from './word-contexts.ts';

/** The bits of the position `any` in all contexts. */
const ANYWHERE = (1 << POSITION.first.shift) - 1;

/** Scratch tables that are filled and cleared for every URL. Nothing is allocated for a URL without words of the lists. */
export class MetWords {
  /** The two tables of {@link POSITION}. For each token list, a bit mask of the positions and contexts in which its words occur. */
  readonly tables: readonly [Int32Array, Int32Array];
  /** The lists that were met, in order. Only the first `touchedCount` entries are valid. */
  readonly touched: number[] = [];
  touchedCount = 0;
  /** For each list that was met, the number of the first segment with a word of it, counted over everything that is read. */
  readonly #metBy: Int32Array;
  /** For each list, 1 if another segment has a word of it, too. */
  readonly #isMetAgain: Uint8Array;
  #segment = 0;
  /** For each token list, 1 if it is recorded; others are ignored. */
  readonly #wanted: Uint8Array;

  constructor(tokens: TokenIndex, wanted: Uint8Array) {
    const size = tokens.names.length;
    this.tables = [new Int32Array(size), new Int32Array(size)];
    this.#metBy = new Int32Array(size);
    this.#isMetAgain = new Uint8Array(size);
    this.#wanted = wanted;
  }

  clear(): void {
    const [first, second] = this.tables;
    for (let at = 0; at < this.touchedCount; at++) {
      const list = this.touched[at]!;
      first[list] = 0;
      second[list] = 0;
      this.#isMetAgain[list] = 0;
    }
    this.#segment = 0;
    this.touchedCount = 0;
  }

  /** Begins the next segment: everything marked from now on is in it. */
  beginSegment(): void {
    this.#segment++;
  }

  /** Marks the lists of a word in the current segment. `first` and `second` are its positions and contexts, one for each table. */
  mark(lists: readonly number[], first: number, second: number): void {
    const firstMasks = this.tables[0];
    const secondMasks = this.tables[1];
    // Marks for the end of the path repeat a segment that was marked before.
    const isSegment = (first & ANYWHERE) !== 0;
    for (let at = 0; at < lists.length; at++) {
      const list = lists[at]!;
      if (this.#wanted[list] === 0) continue;
      if (firstMasks[list] === 0 && secondMasks[list] === 0) {
        this.touched[this.touchedCount++] = list;
        this.#metBy[list] = this.#segment;
      } else if (isSegment && this.#metBy[list] !== this.#segment) this.#isMetAgain[list] = 1;
      firstMasks[list]! |= first;
      secondMasks[list]! |= second;
    }
  }

  /** Whether a word of a list occurs in what was read. */
  has(list: number): boolean {
    return this.tables[0][list] !== 0;
  }

  /** Whether words of two lists occur in two different segments. One word can be in both lists. */
  areApart(list: number, other: number): boolean {
    if (this.#metBy[list] !== this.#metBy[other]) return true;
    return this.#isMetAgain[list] === 1 || this.#isMetAgain[other] === 1;
  }
}
