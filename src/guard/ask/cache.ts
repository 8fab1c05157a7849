/** A cache of recent verdicts by method and URL, limited in number and time. */
import type { Judgment } from './answer.ts';

/** Verdicts with a longer key (method and URL together) are not cached. */
const KEY_MAX_LENGTH = 2_048;

interface Kept {
  readonly judgment: Judgment;
  readonly untilMs: number;
}

/** Verdicts by a key of method and URL. When the cache is full, the oldest entry is removed. */
export class VerdictCache {
  readonly #lifetimeMs: number;
  readonly #entriesMax: number;
  readonly #kept = new Map<string, Kept>();

  constructor(lifetimeMs: number, entriesMax: number) {
    this.#lifetimeMs = lifetimeMs;
    this.#entriesMax = entriesMax;
  }

  find(key: string): Judgment | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (kept.untilMs > performance.now()) return kept.judgment;
    this.#kept.delete(key);
    return undefined;
  }

  clear(): void {
    this.#kept.clear();
  }

  keep(key: string, judgment: Judgment): void {
    if (this.#entriesMax === 0 || this.#lifetimeMs === 0 || key.length > KEY_MAX_LENGTH) return;
    this.#kept.delete(key);
    // A map keeps the order of insertion, so its first key is the oldest.
    if (this.#kept.size >= this.#entriesMax) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, { judgment, untilMs: performance.now() + this.#lifetimeMs });
  }
}
