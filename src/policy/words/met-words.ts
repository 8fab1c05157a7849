/** Which token lists the words of a URL are in, and where those words stand. */
import type { TokenIndex } from './tokens.ts';
import { POSITION } from './word-contexts.ts';

/** The bits of `any` in all contexts. */
const ANYWHERE = (1 << POSITION.first.shift) - 1;

/** One scratch table, filled and cleared for every URL: nothing is allocated for one that touches no list. */
export class MetWords {
  /** The two tables of {@link POSITION}: for each token list where it was met, by position and context. */
  readonly tables: readonly [Int32Array, Int32Array];
  /** The lists that were met, in order; those behind `touchedCount` are old. */
  readonly touched: number[] = [];
  touchedCount = 0;
  /** For each token list that was met, by which segment first, counted over all that was read, and whether by another one as well. */
  readonly #metBy: Int32Array;
  readonly #isMetAgain: Uint8Array;
  #segment = 0;
  /** For each token list whether a condition asks for it in a path; others are not noted. */
  readonly #wanted: Uint8Array;

  constructor(tokens: TokenIndex, wanted: Uint8Array) {
    const size = tokens.names.length;
    this.tables = [new Int32Array(size), new Int32Array(size)];
    this.#metBy = new Int32Array(size);
    this.#isMetAgain = new Uint8Array(size);
    this.#wanted = wanted;
  }

  clear(): void {
    const [places, ends] = this.tables;
    for (let at = 0; at < this.touchedCount; at++) {
      const list = this.touched[at]!;
      places[list] = 0;
      ends[list] = 0;
      this.#isMetAgain[list] = 0;
    }
    this.#segment = 0;
    this.touchedCount = 0;
  }

  /** What is marked from here on stands in another segment. */
  beginSegment(): void {
    this.#segment++;
  }

  /** Marks the lists of a word of the segment at hand. */
  mark(table: 0 | 1, lists: readonly number[], bits: number): void {
    const own = this.tables[table];
    const other = this.tables[table === 0 ? 1 : 0];
    // What is said of a segment at the end of the path was met before.
    const isSegment = table === 0 && (bits & ANYWHERE) !== 0;
    for (let at = 0; at < lists.length; at++) {
      const list = lists[at]!;
      if (this.#wanted[list] === 0) continue;
      if (own[list] === 0 && other[list] === 0) {
        this.touched[this.touchedCount++] = list;
        this.#metBy[list] = this.#segment;
      } else if (isSegment && this.#metBy[list] !== this.#segment) this.#isMetAgain[list] = 1;
      own[list]! |= bits;
    }
  }

  /** Whether a word of a list stands in what was read. */
  has(list: number): boolean {
    return this.tables[0][list] !== 0;
  }

  /** Whether words of two lists stand in two segments: one word can be in both. */
  areApart(list: number, other: number): boolean {
    if (this.#metBy[list] !== this.#metBy[other]) return true;
    return this.#isMetAgain[list] === 1 || this.#isMetAgain[other] === 1;
  }
}
