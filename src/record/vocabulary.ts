/**
 * The page-type vocabulary, its core first. The data file is the only source; its order is the order of `page_types` in every answer, and
 * its verdicts and notes are what the policy's page-type layer starts from.
 */
import { readFileSync } from 'node:fs';

export type VerdictName = 'allow' | 'deny' | 'flag';
export type VocabularyScope = 'core' | 'full';

export interface PageType {
  readonly name: string;
  readonly verdict: VerdictName;
  readonly core: boolean;
  /** Other names a drop may use for it. Case is ignored, and `-` and space mean `_`. */
  readonly aliases: readonly string[];
  readonly meaning: string;
  /** What an answer says where this type decides. */
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
/** Grows with every change of a name, an alias' meaning or the order. The index carries the one it was built with. */
export const VOCABULARY_VERSION: number = file.version;

/** Whether this program's page types are those that an index or a drop was made with. */
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

/** The types of a scope, in vocabulary order. The core is a prefix of the full vocabulary. */
export function pageTypes(scope: VocabularyScope = 'full'): readonly PageType[] {
  return scope === 'core' ? core : full;
}

/** The vocabulary's name for a name or an alias; undefined when neither. */
export function canonicalPageType(name: string): string | undefined {
  return ordinals.has(name) ? name : names.get(foldTypeName(name));
}

/** Position in vocabulary order, from 0, of a canonical name; undefined for anything else, aliases included. */
export function pageTypeOrdinal(name: string): number | undefined {
  return ordinals.get(name);
}
