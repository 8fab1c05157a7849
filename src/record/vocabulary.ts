/**
 * The page-type vocabulary, with the core types first. The data file is the only source. Its order is the order of `page_types` in every
 * answer. Its verdicts and notes are the defaults of the policy's page-type layer.
 */
import { readFileSync } from 'node:fs';

export type VerdictName = 'allow' | 'deny' | 'flag';
export type VocabularyScope = 'core' | 'full';

export interface PageType {
  readonly name: string;
  readonly verdict: VerdictName;
  readonly core: boolean;
  /** Other names that a drop may use for it. Case is ignored, and `-` and white space mean `_`. */
  readonly aliases: readonly string[];
  readonly meaning: string;
  /** The note in an answer if this type determines the verdict. */
  readonly note: string;
}

interface VocabularyFile {
  readonly name: string;
  readonly version: number;
  readonly types: readonly PageType[];
}

const FILE = new URL('../../data/vocabulary/page-types.json', import.meta.url);
const file = JSON.parse(readFileSync(FILE, 'utf8')) as VocabularyFile;

export const VOCABULARY_NAME: string = file.name;
/** Increased with every change of a name, of an alias's meaning or of the order. An index contains the version that it was built with. */
export const VOCABULARY_VERSION: number = file.version;

/** True if an index or a drop was made with this program's page types. */
export function isOwnVocabulary({ name, version }: { readonly name: string; readonly version: number }): boolean {
  return name === VOCABULARY_NAME && version === VOCABULARY_VERSION;
}

const full: readonly PageType[] = Object.freeze([...file.types]);
const core: readonly PageType[] = Object.freeze(full.filter((type) => type.core));
const ordinals = new Map(full.map((type, ordinal) => [type.name, ordinal]));
const names = new Map<string, string>();
for (const type of full) {
  for (const name of [type.name, ...type.aliases]) names.set(foldTypeName(name), type.name);
}

function foldTypeName(name: string): string {
  return name.toLowerCase().replace(/[-\s]+/g, '_');
}

/** Returns the types of a scope in vocabulary order. The core is a prefix of the full vocabulary. */
export function pageTypes(scope: VocabularyScope = 'full'): readonly PageType[] {
  return scope === 'core' ? core : full;
}

/** Returns the vocabulary's name for a name or an alias; undefined if it is neither. */
export function canonicalPageType(name: string): string | undefined {
  return ordinals.has(name) ? name : names.get(foldTypeName(name));
}

/** Returns the position in vocabulary order, from 0, of a canonical name; undefined for anything else, including aliases. */
export function pageTypeOrdinal(name: string): number | undefined {
  return ordinals.get(name);
}
