/** How many lookups are reserved ahead of their charge. */

import { LIMITS } from '../../limits.ts';
import { LEFT_MAX } from '../counters/counters.ts';

/** A block lasts about so long at the account's recent rate, in seconds. */
const BLOCK_SECONDS = 1;
/** The smallest block, so that an idle account's next requests wait for nothing. */
const BLOCK_MIN = LIMITS.blockLookups.value;
/** A block is never more than this share of the limit: so much may count as used after a loss of power. */
const BLOCK_MAX_SHARE = 0.01;
/** Shorter intervals say nothing about a rate, in milliseconds. */
const INTERVAL_MIN_MS = 5;

/** Lookups to hold in reserve for an account. */
export function blockSize(ratePerSecond: number, limit: number): number {
  const wanted = Math.max(BLOCK_MIN, Math.round(ratePerSecond * BLOCK_SECONDS));
  return Math.min(wanted, Math.max(1, Math.floor(limit * BLOCK_MAX_SHARE)), Math.floor(LEFT_MAX / 2));
}

/** The recent rate of an account: rises at once, falls by halves. */
export class ChargeRate {
  perSecond = 0;
  #used = 0;
  #atMs = 0;

  /** Notes what was used by now; a lower number than before starts over. */
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
