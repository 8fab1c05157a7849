/**
 * Answers that are kept for those who ask the same again: what is asked often is answered without the index and the policy. They belong to
 * one pair of data and go with it; nothing of an account is in them, and every answer is charged.
 */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import type { Verdict } from '../../policy/types.ts';

/** What an answer says, as the decision log wants it. */
export interface JudgedUrl {
  readonly method: string;
  readonly url: CanonicalUrl;
  /** The domain that is reported. */
  readonly domain: string;
  /** Whether a record answers. */
  readonly found: boolean;
  readonly verdict: Verdict;
}

/** An answer without the quota of whoever asks, and where its bytes are: before the quota, and after it. */
export interface KeptAnswer extends JudgedUrl {
  readonly start: number;
  readonly gap: number;
  readonly end: number;
}

/** When so many are kept, or their bytes take so much, all are dropped. */
const ANSWERS_MAX = 4_000;
const POOL_BYTES = 2 * 1024 * 1024;
const QUERY_MAX_LENGTH = 512;
const ANSWER_MAX_BYTES = 8_192;
/** One answer of so many is kept: what is asked once costs next to nothing, and what is asked often is soon there. */
const KEPT_EACH = 32;

/** The answers of one worker, by the query that was sent. */
export class KeptAnswers {
  readonly pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  readonly #answers = new Map<string, KeptAnswer>();
  #used = 0;
  #turn = 0;

  /** The answer to the very same query; undefined where there is none. A long one is none of those that are kept: it is not even hashed. */
  get(query: string): KeptAnswer | undefined {
    return query.length > QUERY_MAX_LENGTH ? undefined : this.#answers.get(query);
  }

  /** Whether the answer at hand is one of those that are kept. */
  isTurn(): boolean {
    this.#turn = (this.#turn + 1) % KEPT_EACH;
    return this.#turn === 0;
  }

  /** Keeps an answer: what comes before the quota, and what after it. One that is very long is not kept. */
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
