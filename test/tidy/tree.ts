/** The tree as the tidy tests see it: its files, and their imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Folders that are generated. */
const MADE = new Set(['node_modules', '.git', 'var', 'dist', 'coverage', '__pycache__']);

/** Returns the paths of the tree's files under `folder`, relative to the root, sorted. */
export function filesUnder(folder: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    if (MADE.has(entry.name)) continue;
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) found.push(...filesUnder(path));
    else if (entry.isFile()) found.push(path);
  }
  return found.sort();
}

/** Returns the text of a file of the tree. */
export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** TypeScript files under a folder. */
export function sourcesUnder(folder: string): string[] {
  return filesUnder(folder).filter((path) => path.endsWith('.ts'));
}

export interface Import {
  readonly from: string;
  /** A path of the tree, or a package or `node:` name. */
  readonly to: string;
  readonly inside: boolean;
  /** Whether the file is only named here, to run in its own process or thread. */
  readonly isStarted: boolean;
}

const SPECIFIER = /(?:^|[^\w$.])(?:from|import|require)\s*\(?\s*(['"])([^'"\n]+)\1/gm;
/** Files started by name, such as workers and child processes. */
const STARTED = /new URL\(\s*(['"])(\.{1,2}\/[^'"\n]+\.ts)\1/g;

/** Returns the imports of a file (static, dynamic, for types), and the files that it starts by their relative name. */
export function importsOf(path: string, text = textOf(path)): Import[] {
  const found = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[2] as string);
  const imported = new Set(found(SPECIFIER));
  return [...new Set([...imported, ...found(STARTED)])].map((specifier) => {
    const inside = specifier.startsWith('.');
    const to = inside ? normalize(join(dirname(path), specifier)) : specifier;
    return { from: path, to, inside, isStarted: !imported.has(specifier) };
  });
}

/** Returns the package of a specifier: `ajv/dist/2020.js` → `ajv`, `@a/b/c` → `@a/b`, `node:fs` → `node:fs`. */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Returns the module of a source file: its folder under src, or the name of a file at the top of src (`errors`, `cli`). */
export function moduleOf(path: string): string | undefined {
  return /^src\/([^/]+?)(?:\/|\.ts$)/.exec(path)?.[1];
}
