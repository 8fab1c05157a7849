/** A cache with a maximum number of entries. When it is full, it is cleared. */
export class BoundedCache<Key, Value> {
  readonly #maxSize: number;
  readonly #values = new Map<Key, Value>();

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  /** Returns the cached value; undefined if there is none. */
  get(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  /** Stores a value and returns it. */
  keep(key: Key, value: Value): Value {
    if (this.#values.size >= this.#maxSize) this.#values.clear();
    this.#values.set(key, value);
    return value;
  }

  clear(): void {
    this.#values.clear();
  }
}
