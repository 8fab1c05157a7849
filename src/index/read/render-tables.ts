/** Dictionary and metadata, prepared for rendering answers. */

import { type Piece, pieceOf } from '../../bytes/json-pieces.ts';
import type { Dictionary } from '../format/dictionary.ts';
import type { Metadata } from '../format/metadata.ts';

/** The texts of dictionary and metadata as bytes, ready to be copied into an answer. */
export class RenderTables {
  readonly dictionary: Dictionary;
  readonly metadata: Metadata;
  /** For each page type, what precedes its URL: `"login":"` for the first page of a record, `","login":"` for the others. */
  readonly firstKeys: readonly Piece[];
  readonly nextKeys: readonly Piece[];
  readonly origins: readonly Piece[];
  /** For each page type, the concatenated paths of its path templates. Template i is `[pathStarts[i], pathStarts[i + 1])`. */
  readonly paths: readonly Piece[];
  readonly pathStarts: readonly Uint32Array[];
  /** For each page type and template, its origin, or INHERITED_ORIGIN. */
  readonly templateOrigins: readonly Uint8Array[];
  readonly languages: readonly Piece[];
  /** By position in the dictionary's `iabOrder`: `,"iab_category":"…"`. */
  readonly iab: readonly Piece[];
  /** By ordinal: the name as a JSON string. */
  readonly filtering: readonly Piece[];
  readonly filteringSets: readonly Uint8Array[];

  /** @throws RangeError if dictionary and metadata do not match */
  constructor(dictionary: Dictionary, metadata: Metadata) {
    this.dictionary = dictionary;
    this.metadata = metadata;
    const { pageTypes } = metadata.vocabulary;
    if (dictionary.pathTemplates.length !== pageTypes.length)
      throw new RangeError('the dictionary is for another vocabulary');
    this.firstKeys = pageTypes.map((name) => pieceOf(`"${name}":"`));
    this.nextKeys = pageTypes.map((name) => pieceOf(`","${name}":"`));
    this.origins = dictionary.origins.map(pieceOf);
    this.paths = dictionary.pathTemplates.map((pathTemplates) =>
      pieceOf(pathTemplates.map(({ path }) => path).join('')),
    );
    this.pathStarts = dictionary.pathTemplates.map((pathTemplates) => {
      const starts = new Uint32Array(pathTemplates.length + 1);
      pathTemplates.forEach(({ path }, i) => {
        starts[i + 1] = starts[i]! + path.length;
      });
      return starts;
    });
    this.templateOrigins = dictionary.pathTemplates.map((pathTemplates) =>
      Uint8Array.from(pathTemplates, ({ origin }) => origin),
    );
    this.languages = dictionary.languages.map((code) => pieceOf(`,"language":"${code}"`));
    this.iab = dictionary.iabOrder.map((ordinal) => {
      const name = metadata.iab.names[ordinal];
      if (name === undefined) throw new RangeError(`there is no IAB category ${ordinal}`);
      return pieceOf(`,"iab_category":${JSON.stringify(name)}`);
    });
    this.filtering = metadata.filtering.names.map((name) => pieceOf(JSON.stringify(name)));
    this.filteringSets = dictionary.filteringSets.map((set) => {
      if (set.some((ordinal) => ordinal >= this.filtering.length))
        throw new RangeError('a filtering set has no such category');
      return Uint8Array.from(set);
    });
  }
}
