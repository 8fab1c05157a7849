/** File extensions, found without case and without a copy. */

/** As many letters and digits fit into a small integer. */
const PACKED_MAX_LENGTH = 5;
const BASE = 37;

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
    const number = end - start <= PACKED_MAX_LENGTH ? packed(text, start, end) : -1;
    return number >= 0 ? this.#packed.has(number) : this.#hasText(text.slice(start, end).toLowerCase());
  }

  #hasText(lower: string): boolean {
    return (
      this.#long.has(lower) || (lower.length <= PACKED_MAX_LENGTH && this.#packed.has(packed(lower, 0, lower.length)))
    );
  }
}

/** A few letters and digits as one number; -1 where something else stands among them. */
function packed(text: string, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    const lower = code | 0x20;
    if (code >= 0x30 && code <= 0x39) number = number * BASE + code - 0x2f;
    else if (code < 0x80 && lower >= 0x61 && lower <= 0x7a) number = number * BASE + lower - 0x56;
    else return -1;
  }
  return number;
}
