/** Computes how large the answer for a record can be. */
import type { RecordNames } from '../../record/names.ts';
import type { RecordFields } from './record-fields.ts';

// Everything in an answer's head and tail except names, URLs and the domain, with the longest possible numbers.
const FRAME_SIZE_BYTES =
  '{"domain":"","found":true,"language":"xx","page_types":{},"iab_category":,"filtering_categories":[]'.length +
  ',"open_page_rank":10.00,"global_rank":4294967295}'.length;

/** Upper bounds for the size of a record's answer as JSON, in bytes. They do not include JSON escapes in URLs. */
export class AnswerSizes {
  readonly #pageTypes: Uint32Array;
  readonly #iab: Uint32Array;
  readonly #filtering: Uint32Array;

  /** @param names the names that the records refer to */
  constructor({ vocabulary, iab, filtering }: RecordNames) {
    const sizes = (names: readonly string[]): Uint32Array =>
      Uint32Array.from(names, (name) => Buffer.byteLength(JSON.stringify(name)));
    this.#pageTypes = sizes(vocabulary.pageTypes);
    this.#iab = sizes(iab.names);
    this.#filtering = sizes(filtering.names);
  }

  /** Returns the bound for a record, as if it had no pages. */
  withoutPages(fields: RecordFields): number {
    let size = FRAME_SIZE_BYTES + fields.domainEnd - fields.domainStart;
    if (fields.iabCategory >= 0) size += this.#iab[fields.iabCategory]!;
    for (let i = 0; i < fields.filteringCount; i++) size += this.#filtering[fields.filtering[i]!]! + 1;
    return size;
  }

  /** Returns the size that a page of this type adds. `urlSize`: size of its URL, in bytes. */
  ofPage(type: number, urlSize: number): number {
    // Name, colon, quotes, comma.
    return this.#pageTypes[type]! + 4 + urlSize;
  }
}
