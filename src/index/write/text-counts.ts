/** How often texts occur, for the trainer: without making a string of each, and in a bounded amount of memory. */
import { type ByteKey, ByteMap, NOT_FOUND } from '../../bytes/byte-map.ts';

/** What `add` returns where there is no space left for a new text. */
export const NOT_COUNTED = -1;

/** Counts texts of several kinds. What comes when the table is full is only counted if it is known already. */
export class TextCounts {
  #left: number;
  #leftBytes: number;
  readonly #numbers = new ByteMap();
  /** By number, in the order in which they came: count, size in bytes, place in the map. */
  readonly #counts: number[] = [];
  readonly #sizes: number[] = [];
  readonly #places: number[] = [];
  readonly #ofKind: number[][] = [];

  /** Counts at most so many different texts, of so many bytes together. */
  constructor(maxTexts: number, maxBytes: number) {
    this.#left = maxTexts;
    this.#leftBytes = maxBytes;
  }

  /** Counts a text of a kind (a small number); returns the text's number, or `NOT_COUNTED`. */
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

  /** Counts a text again, by what `add` returned. */
  addAgain(number: number): void {
    if (number !== NOT_COUNTED) this.#counts[number] = this.#counts[number]! + 1;
  }

  /** The texts of a kind, in the order in which they came. */
  *texts(kind: number): Generator<string> {
    for (const number of this.#ofKind[kind] ?? []) yield this.#textOf(number);
  }

  /** Texts with at least `minCount`, the most frequent first; on a tie the smaller one. */
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
