/**
 * A cache of responses, so that frequent queries are answered without the index and the policy. It belongs to one pair of index and policy
 * and is dropped with it. Its entries hold no data of an account, and every cached response is charged.
 */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import type { Verdict } from '../../policy/types.ts';

/** The content of a response that the decision log needs. */
export interface JudgedUrl {
  readonly method: string;
  readonly url: CanonicalUrl;
  /** The domain in the response. */
  readonly domain: string;
  /** Whether the index has a record for it. */
  readonly found: boolean;
  readonly verdict: Verdict;
}

/**
 * A cached response without the account's quota. Offsets into the pool: the bytes before the quota are from `start` to `gap`, those after it
 * from `gap` to `end`.
 */
export interface KeptAnswer extends JudgedUrl {
  readonly start: number;
  readonly gap: number;
  readonly end: number;
}

/** Limits of entries and of their bytes. When one is reached, the whole cache is cleared. */
const ANSWERS_MAX = 4_000;
const POOL_BYTES = 2 * 1024 * 1024;
const QUERY_MAX_LENGTH = 512;
const ANSWER_MAX_BYTES = 8_192;
/** One of this many responses is cached: rare queries cost next to nothing, and frequent ones are soon cached. */
const KEPT_EACH = 32;

/** The cached responses of one worker, by the query string of the request. */
export class KeptAnswers {
  readonly pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  readonly #answers = new Map<string, KeptAnswer>();
  #used = 0;
  #turn = 0;

  /** Returns the response to exactly this query, or undefined. A query too long for the cache is not even hashed. */
  get(query: string): KeptAnswer | undefined {
    return query.length > QUERY_MAX_LENGTH ? undefined : this.#answers.get(query);
  }

  /** Whether to cache the current response. Call it once for each cacheable response. */
  isTurn(): boolean {
    this.#turn = (this.#turn + 1) % KEPT_EACH;
    return this.#turn === 0;
  }

  /** Caches a response: the bytes before the quota (`head`) and after it (`tail`). Very long ones are not cached. */
  keep(query: string, judged: JudgedUrl, head: Uint8Array, tail: Uint8Array): void {
    const size = head.length + tail.length;
    if (query.length > QUERY_MAX_LENGTH || size > ANSWER_MAX_BYTES) return;
    if (this.#answers.size >= ANSWERS_MAX || this.#used + size > POOL_BYTES) {
      this.#answers.clear();
      this.#used = 0;
    }
    const start = this.#used;
    const gap = start + head.length;
    this.#used = start + size;
    this.pool.set(head, start);
    this.pool.set(tail, gap);
    this.#answers.set(query, { ...judged, start, gap, end: this.#used });
  }
}
