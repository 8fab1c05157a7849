/** The names that an index is built with, from the record room's data files. */
import type { Catalog } from '../index/writer.ts';
import { FILTERING_TAXONOMY_VERSION, filteringCategories, IAB_TAXONOMY_VERSION, iabPaths } from '../record/taxonomy.ts';
import { pageTypes, VOCABULARY_NAME, VOCABULARY_VERSION, type VocabularyScope } from '../record/vocabulary.ts';

/** Vocabulary and taxonomies of an index. */
export function catalogOf(scope: VocabularyScope): Catalog {
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
