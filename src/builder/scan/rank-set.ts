/** Which global ranks were seen, shared by all workers: one bit for each. */

const BITS_MIN = 2 ** 16;
const BITS_MAX = 2 ** 29;

/** Ranks above the set's size are not looked at: no more domains than entries can have a rank, so they are rare. */
export class RankSet {
  readonly words: Int32Array;

  /** Takes the memory of another thread's set. */
  constructor(shared: SharedArrayBuffer) {
    this.words = new Int32Array(shared);
  }

  /** Memory for the ranks of that many records. */
  static allocate(records: number): SharedArrayBuffer {
    let bits = BITS_MIN;
    while (bits < BITS_MAX && bits < records) bits *= 2;
    return new SharedArrayBuffer(bits / 8);
  }

  /** Adds a rank; true where it was there already. */
  add(rank: number): boolean {
    const word = rank >>> 5;
    if (word >= this.words.length) return false;
    const bit = 1 << (rank & 31);
    return (Atomics.or(this.words, word, bit) & bit) !== 0;
  }
}
