/** Reads mapping.json: the sources that the sample may use, the page types of their pages, and the mapping of their categories. */
import { readFileSync } from 'node:fs';
import { filteringOrdinal, iabOrdinal } from '../../src/record/taxonomy.ts';
import { canonicalPageType } from '../../src/record/vocabulary.ts';

export interface Source {
  readonly title: string;
  readonly url: string;
  readonly snapshot: string;
  readonly license: string;
}

export interface PageRule {
  /** `source:kind`. */
  readonly from: string;
  readonly evidence?: string;
  readonly type: string;
  readonly host?: string;
  readonly path?: string;
  readonly not?: string;
  /** Whether any other source of the type takes precedence. */
  readonly second?: boolean;
  readonly reason: string;
}

export interface CategoryRule {
  readonly filtering?: readonly string[];
  readonly iab?: string;
}

export interface SourceMapping {
  readonly sources: Readonly<Record<string, Source>>;
  readonly licenses_allowed: readonly string[];
  readonly pages: { readonly rules: readonly PageRule[]; readonly hosts_of_many: readonly string[] };
  readonly categories: Readonly<Record<string, Readonly<Record<string, CategoryRule>>>>;
}

export function readMapping(): SourceMapping {
  return JSON.parse(readFileSync(new URL('./mapping.json', import.meta.url), 'utf8')) as SourceMapping;
}

/** Returns the names in the mapping that do not exist: licenses that are not allowed, unknown page types and categories. */
export function mappingProblems(mapping: SourceMapping): string[] {
  const problems: string[] = [];
  for (const [name, source] of Object.entries(mapping.sources)) {
    if (!mapping.licenses_allowed.includes(source.license)) problems.push(`${name}: license ${source.license}`);
  }
  for (const rule of mapping.pages.rules) {
    if (mapping.sources[rule.from.split(':')[0] ?? ''] === undefined) problems.push(`no source for ${rule.from}`);
    if (canonicalPageType(rule.type) !== rule.type) problems.push(`${rule.from}: type ${rule.type}`);
  }
  for (const [source, table] of Object.entries(mapping.categories)) {
    if (mapping.sources[source] === undefined) problems.push(`no source for the categories of ${source}`);
    for (const [category, rule] of Object.entries(table)) {
      if (rule.iab !== undefined && iabOrdinal(rule.iab) === undefined)
        problems.push(`${source} ${category}: ${rule.iab}`);
      for (const id of rule.filtering ?? []) {
        if (filteringOrdinal(id) === undefined) problems.push(`${source} ${category}: ${id}`);
      }
    }
  }
  return problems;
}
