/** Seeded pseudo-random numbers for data. They are not cryptographically secure. */

/** Mixes 32 bits, so that neighboring values give unrelated results. */
export function mix(value: number): number {
  let z = value | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return z ^ (z >>> 15);
}

/** A separate stream of random numbers for each record: record `i` of a seed is always the same, in every thread. */
export class Stream {
  #state = 0;
  #step = 1;

  restart(seed: number, index: number): void {
    const high = Math.floor(index / 0x1_0000_0000);
    this.#state = mix(mix(seed ^ 0x5bd1e995) + Math.imul(high, 0x632be59b) + (index | 0));
    this.#step = mix(this.#state ^ 0x3c6ef372) | 1;
  }

  /** Returns 32 random bits as a signed number. */
  bits(): number {
    this.#state = (this.#state + this.#step) | 0;
    return mix(this.#state);
  }

  /** Returns a number in [0, 1). */
  fraction(): number {
    return (this.bits() >>> 0) / 0x1_0000_0000;
  }

  /** Returns an integer in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }
}
