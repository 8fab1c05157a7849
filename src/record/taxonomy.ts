/**
 * The two category taxonomies: IAB Content Taxonomy 3.1 (704 categories) and our web-filtering taxonomy (59). Records contain ordinals,
 * which are positions in the data file, from 0. Answers contain the path or the name.
 */
import { readFileSync } from 'node:fs';

export interface IabCategory {
  /** IAB's own ID: letters and digits, not always a number. */
  readonly id: string;
  /** The names from the first tier down, joined by ` > `. */
  readonly path: string;
}

export interface FilteringCategory {
  readonly id: string;
  /** The name in answers and policies. */
  readonly name: string;
  readonly group: string;
  /** True if the guard rule `category_threat` denies the category. */
  readonly threat: boolean;
  readonly meaning: string;
}

interface TaxonomyFile<C> {
  readonly name: string;
  readonly version: string;
  readonly categories: readonly C[];
}

function read<C>(name: string): TaxonomyFile<C> {
  return JSON.parse(readFileSync(new URL(`../../data/taxonomies/${name}`, import.meta.url), 'utf8')) as TaxonomyFile<C>;
}

const iab = read<IabCategory>('iab-content-3.1.json');
const filtering = read<FilteringCategory>('filtering-59.json');

export const IAB_TAXONOMY_VERSION: string = `${iab.name}-${iab.version}`;
export const FILTERING_TAXONOMY_VERSION: string = `${filtering.name}-${filtering.version}`;

export const iabCategories: readonly IabCategory[] = Object.freeze([...iab.categories]);
/** Ordinal → path. */
export const iabPaths: readonly string[] = Object.freeze(iab.categories.map((category) => category.path));

export const filteringTaxonomy: readonly FilteringCategory[] = Object.freeze([...filtering.categories]);
/** Ordinal → name. */
export const filteringCategories: readonly string[] = Object.freeze(
  filtering.categories.map((category) => category.name),
);

const iabOrdinals = new Map<string, number>();
for (const [ordinal, category] of iab.categories.entries()) {
  iabOrdinals.set(category.id, ordinal);
  iabOrdinals.set(category.path, ordinal);
}

const filteringOrdinals = new Map<string, number>();
for (const [ordinal, category] of filtering.categories.entries()) {
  filteringOrdinals.set(category.id, ordinal);
  filteringOrdinals.set(category.name, ordinal);
}

/** Returns the ordinal of the category with exactly this full path or IAB ID; undefined if there is none. */
export function iabOrdinal(pathOrId: string): number | undefined {
  return iabOrdinals.get(pathOrId);
}

/** Returns the ordinal of the category with exactly this name or ID; undefined if there is none. */
export function filteringOrdinal(nameOrId: string): number | undefined {
  return filteringOrdinals.get(nameOrId);
}
