/** Seeded pseudo-random numbers: good enough for data, no more. */

/** Mixes 32 bits so that neighbors have nothing in common. */
export function mix(value: number): number {
  let z = value | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return z ^ (z >>> 15);
}

/** A stream of its own for each record: record `i` of seed `s` is the same whoever makes it. */
export class Stream {
  #state = 0;
  #step = 1;

  restart(seed: number, index: number): void {
    const high = Math.floor(index / 0x1_0000_0000);
    this.#state = mix(mix(seed ^ 0x5bd1e995) + Math.imul(high, 0x632be59b) + (index | 0));
    this.#step = mix(this.#state ^ 0x3c6ef372) | 1;
  }

  /** 32 bits, signed. */
  bits(): number {
    this.#state = (this.#state + this.#step) | 0;
    return mix(this.#state);
  }

  /** A number from 0 up to below 1. */
  fraction(): number {
    return (this.bits() >>> 0) / 0x1_0000_0000;
  }

  /** A whole number from 0 up to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }
}
