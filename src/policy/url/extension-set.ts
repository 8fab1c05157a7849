/** File extensions, found without case and without a copy. */
import { PACKED_MAX_LENGTH, packed } from './characters.ts';

/** A set of extensions, which are letters and digits of ASCII. */
export class ExtensionSet {
  readonly #packed = new Set<number>();
  readonly #long = new Set<string>();

  /** @param extensions in lower case, a blank between them */
  constructor(extensions: string) {
    for (const extension of extensions.split(' ')) {
      if (extension.length > PACKED_MAX_LENGTH) this.#long.add(extension);
      else this.#packed.add(packed(extension, 0, extension.length));
    }
  }

  /** Whether what stands between `start` and `end` is one. */
  has(text: string, start: number, end: number): boolean {
    if (end <= start) return false;
    const number = packed(text, start, end);
    return number >= 0 ? this.#packed.has(number) : this.#hasText(text.slice(start, end).toLowerCase());
  }

  #hasText(lower: string): boolean {
    return this.#long.has(lower) || this.#packed.has(packed(lower, 0, lower.length));
  }
}
