/** Counts texts for the trainer, in bounded memory and without creating a string for each. */
import { type ByteKey, ByteMap, NOT_FOUND } from '../../bytes/byte-map.ts';

/** Returned by `add` if there is no space left for a new text. */
export const NOT_COUNTED = -1;

/** Counts texts of several kinds. When the table is full, counts only texts that it already has. */
export class TextCounts {
  #left: number;
  #leftBytes: number;
  readonly #numbers = new ByteMap();
  /** By the number of a text, which is its position in order of arrival: its count, size in bytes, and place in the map. */
  readonly #counts: number[] = [];
  readonly #sizes: number[] = [];
  readonly #places: number[] = [];
  readonly #ofKind: number[][] = [];

  /** @param maxTexts maximum number of different texts @param maxBytes maximum of their total size */
  constructor(maxTexts: number, maxBytes: number) {
    this.#left = maxTexts;
    this.#leftBytes = maxBytes;
  }

  /** Counts a text of a kind (a small integer). Returns the number of the text, or `NOT_COUNTED`. */
  add(kind: number, text: ByteKey): number {
    const number = this.#numbers.get(kind, text);
    if (number !== NOT_FOUND) {
      this.#counts[number] = this.#counts[number]! + 1;
      return number;
    }
    if (this.#left === 0 || this.#leftBytes < text.size) return NOT_COUNTED;
    this.#left -= 1;
    this.#leftBytes -= text.size;
    const added = this.#counts.length;
    this.#places.push(this.#numbers.add(kind, text, added));
    this.#counts.push(1);
    this.#sizes.push(text.size);
    this.#ofKind[kind] ??= [];
    this.#ofKind[kind].push(added);
    return added;
  }

  /** Counts a text again. `number`: the result of `add`. */
  addAgain(number: number): void {
    if (number !== NOT_COUNTED) this.#counts[number] = this.#counts[number]! + 1;
  }

  /** Yields the texts of a kind in order of arrival. */
  *texts(kind: number): Generator<string> {
    for (const number of this.#ofKind[kind] ?? []) yield this.#textOf(number);
  }

  /** Returns the texts counted at least `minCount` times, with their counts: the most frequent first, on a tie the smaller one. */
  ranked(kind: number, minCount: number): [string, number][] {
    const numbers = this.#ofKind[kind] ?? [];
    return numbers
      .filter((number) => this.#counts[number]! >= minCount)
      .map((number): [string, number] => [this.#textOf(number), this.#counts[number]!])
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  #textOf(number: number): string {
    return this.#numbers.textAt(this.#places[number]!, this.#sizes[number]!);
  }
}
