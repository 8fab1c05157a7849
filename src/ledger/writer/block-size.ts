/** Decides how many lookups are reserved in advance. */

import { LIMITS } from '../../limits.ts';
import { LEFT_MAX } from '../counters/counters.ts';

/** How long a block should last at the account's recent rate, in seconds. */
const BLOCK_SECONDS = 1;
/** The smallest block, so that the next requests of an idle account need not wait. */
const BLOCK_MIN = LIMITS.blockLookups.value;
/** The largest share of the limit that one block may be: after a power failure the whole block may count as used. */
const BLOCK_MAX_SHARE = 0.01;
/** The shortest interval over which a rate is measured, in milliseconds. */
const INTERVAL_MIN_MS = 5;

/** Returns how many lookups to reserve in advance for an account. */
export function blockSize(ratePerSecond: number, limit: number): number {
  const wanted = Math.max(BLOCK_MIN, Math.round(ratePerSecond * BLOCK_SECONDS));
  return Math.min(wanted, Math.max(1, Math.floor(limit * BLOCK_MAX_SHARE)), Math.floor(LEFT_MAX / 2));
}

/** Measures the recent rate of an account. An increase counts at once; a decrease is averaged with the previous rate. */
export class ChargeRate {
  perSecond = 0;
  #used = 0;
  #atMs = 0;

  /** Records the number of lookups used so far. A number lower than before starts a new count. */
  observe(used: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#atMs;
    if (used < this.#used || this.#atMs === 0) this.#used = used;
    else if (elapsedMs < INTERVAL_MIN_MS && used - this.#used < BLOCK_MIN / 2) return;
    const rate = ((used - this.#used) * 1_000) / Math.max(elapsedMs, INTERVAL_MIN_MS);
    this.perSecond = rate > this.perSecond ? rate : (rate + this.perSecond) / 2;
    this.#used = used;
    this.#atMs = nowMs;
  }
}
