/** Byte strings → numbers, looked up without making a string: what the encoder asks for every URL of every record. */

/** An open-addressed table, filled once. */
export class ByteMap {
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #keys: Uint8Array;
  readonly #starts: Int32Array;
  readonly #tags: Int32Array;
  readonly #values: Int32Array;

  /** Each entry: a tag (any 31-bit number, part of the key), the key's text (one byte a character), its value. */
  constructor(entries: readonly { readonly tag: number; readonly text: string; readonly value: number }[]) {
    let size = 16;
    while (size < entries.length * 3) size *= 2;
    this.#mask = size - 1;
    this.#slots = new Int32Array(size).fill(-1);
    this.#starts = new Int32Array(entries.length + 1);
    this.#tags = new Int32Array(entries.length);
    this.#values = new Int32Array(entries.length);
    const keys: number[] = [];
    entries.forEach(({ tag, text, value }, i) => {
      for (let j = 0; j < text.length; j++) keys.push(text.charCodeAt(j));
      this.#starts[i + 1] = keys.length;
      this.#tags[i] = tag;
      this.#values[i] = value;
    });
    this.#keys = Uint8Array.from(keys);
    for (let i = 0; i < entries.length; i++) {
      let slot = hash(this.#tags[i]!, this.#keys, this.#starts[i]!, this.#starts[i + 1]!) & this.#mask;
      while (this.#slots[slot] !== -1) slot = (slot + 1) & this.#mask;
      this.#slots[slot] = i;
    }
  }

  /** The value of a key, or -1. */
  get(tag: number, source: Uint8Array, start: number, end: number): number {
    return this.getHashed(tag, hashBytes(source, start, end), source, start, end);
  }

  /** The same, with `hashBytes` of the range already computed. */
  getHashed(tag: number, bytesHash: number, source: Uint8Array, start: number, end: number): number {
    const keys = this.#keys;
    let slot = mix(tag, bytesHash) & this.#mask;
    for (;;) {
      const i = this.#slots[slot]!;
      if (i === -1) return -1;
      if (this.#tags[i] === tag) {
        const keyStart = this.#starts[i]!;
        const size = this.#starts[i + 1]! - keyStart;
        if (size === end - start) {
          let j = 0;
          while (j < size && keys[keyStart + j] === source[start + j]) j++;
          if (j === size) return this.#values[i]!;
        }
      }
      slot = (slot + 1) & this.#mask;
    }
  }
}

/** A quick hash of a range; stays inside the process. */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let value = 0x811c9dc5 | 0;
  for (let i = start; i < end; i++) value = Math.imul(value ^ source[i]!, 0x01000193);
  return value;
}

function mix(tag: number, bytesHash: number): number {
  const value = Math.imul(bytesHash ^ Math.imul(tag + 1, 0x9e3779b1), 0x85ebca77);
  return value ^ (value >>> 15);
}

function hash(tag: number, source: Uint8Array, start: number, end: number): number {
  return mix(tag, hashBytes(source, start, end));
}
