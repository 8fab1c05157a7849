/** The names for the ordinals in records: the page-type vocabulary and the two taxonomies. */
import { FILTERING_TAXONOMY_VERSION, filteringCategories, IAB_TAXONOMY_VERSION, iabPaths } from './taxonomy.ts';
import { pageTypes, VOCABULARY_NAME, VOCABULARY_VERSION, type VocabularyScope } from './vocabulary.ts';

/** A taxonomy that records refer to by ordinal. */
export interface Taxonomy {
  readonly version: string;
  /** By ordinal. */
  readonly names: readonly string[];
}

/** All names that the records of an index can refer to, with the versions of their lists. */
export interface RecordNames {
  readonly vocabulary: { readonly name: string; readonly version: number; readonly pageTypes: readonly string[] };
  readonly iab: Taxonomy;
  readonly filtering: Taxonomy;
}

/** Returns the names in this program's own data files. */
export function recordNames(scope: VocabularyScope): RecordNames {
  return {
    vocabulary: {
      name: VOCABULARY_NAME,
      version: VOCABULARY_VERSION,
      pageTypes: pageTypes(scope).map(({ name }) => name),
    },
    iab: { version: IAB_TAXONOMY_VERSION, names: iabPaths },
    filtering: { version: FILTERING_TAXONOMY_VERSION, names: filteringCategories },
  };
}
