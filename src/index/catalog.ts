/** The names that an index is built with, and what they mean for the size of an answer. */
import type { Metadata } from './metadata.ts';
import type { RecordFields } from './record-fields.ts';

/** Vocabulary and taxonomies: what ordinals in a record stand for. */
export type Catalog = Pick<Metadata, 'vocabulary' | 'iab' | 'filtering'>;

// Everything in an answer's head and tail that is not a name, a URL or the domain, with the longest numbers.
const FRAME_SIZE_BYTES =
  '{"domain":"","found":true,"language":"xx","page_types":{},"iab_category":,"filtering_categories":[]'.length +
  ',"open_page_rank":10.00,"global_rank":4294967295}'.length;

/** Upper bounds of the size of a record's answer, in bytes of JSON; characters of URLs that JSON escapes are not counted. */
export class AnswerSizes {
  readonly #pageTypes: Uint32Array;
  readonly #iab: Uint32Array;
  readonly #filtering: Uint32Array;

  constructor(catalog: Catalog) {
    const sizes = (names: readonly string[]): Uint32Array =>
      Uint32Array.from(names, (name) => Buffer.byteLength(JSON.stringify(name)));
    this.#pageTypes = sizes(catalog.vocabulary.pageTypes);
    this.#iab = sizes(catalog.iab.names);
    this.#filtering = sizes(catalog.filtering.names);
  }

  of(fields: RecordFields): number {
    let size = FRAME_SIZE_BYTES + fields.domainEnd - fields.domainStart;
    for (let i = 0; i < fields.pageCount; i++) {
      // Name, colon, quotes, comma.
      size += this.#pageTypes[fields.pageTypes[i]!]! + 4 + fields.pageEnds[i]! - fields.pageStarts[i]!;
    }
    if (fields.iabCategory >= 0) size += this.#iab[fields.iabCategory]!;
    for (let i = 0; i < fields.filteringCount; i++) size += this.#filtering[fields.filtering[i]!]! + 1;
    return size;
  }
}
