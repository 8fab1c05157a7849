/** One cache for results that are asked for again and again: at most so many, then it starts over. */
export class BoundedCache<Key, Answer> {
  readonly #maxSize: number;
  readonly #known = new Map<Key, Answer>();

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  /** Undefined where it does not know. */
  get(key: Key): Answer | undefined {
    return this.#known.get(key);
  }

  /** Keeps an answer, and gives it back. */
  keep(key: Key, answer: Answer): Answer {
    if (this.#known.size >= this.#maxSize) this.#known.clear();
    this.#known.set(key, answer);
    return answer;
  }

  clear(): void {
    this.#known.clear();
  }
}
