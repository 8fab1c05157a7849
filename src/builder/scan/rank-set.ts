/** The set of global ranks seen so far: a bit for each rank, in memory that all workers share. */

const BITS_MIN = 2 ** 16;
const BITS_MAX = 2 ** 29;

/** Ignores ranks above its size. They are rare: it has a bit for each entry of the drop, and no more domains than that can have a rank. */
export class RankSet {
  readonly words: Int32Array;

  /** Uses memory from `allocate`, which other threads may share. */
  constructor(shared: SharedArrayBuffer) {
    this.words = new Int32Array(shared);
  }

  /** Allocates memory for the ranks of `records` records. */
  static allocate(records: number): SharedArrayBuffer {
    let bits = BITS_MIN;
    while (bits < BITS_MAX && bits < records) bits *= 2;
    return new SharedArrayBuffer(bits / 8);
  }

  /** Adds a rank. Returns true if the set had it already. */
  add(rank: number): boolean {
    const word = rank >>> 5;
    if (word >= this.words.length) return false;
    const bit = 1 << (rank & 31);
    return (Atomics.or(this.words, word, bit) & bit) !== 0;
  }
}
