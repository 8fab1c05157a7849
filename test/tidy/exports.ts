/** The exports of the files in the tree, and their users. Requires formatted code. */
import { dirname, join, normalize } from 'node:path';
import { sourcesUnder, textOf } from './tree.ts';

/** A name that a file exports. */
export interface Export {
  readonly file: string;
  readonly name: string;
}

const DECLARED = /^export (?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let) (\w+)/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;
/** `import { a, type b as c } from './x.ts'`, and the same with `export`. */
const NAMED = /(?:^|\n)(?:import|export)(?: type)? (?:\w+, )?\{([^}]*)\} from '(\.[^']+)'/g;
/** `const { a, b: c } = await import('./x.ts')`. */
const DESTRUCTURED = /\{([^{}]*)\}(?:: [^=;]+)? = (?:\w+ \?\?= )?await import\(\s*'(\.[^']+)',?\s*\)/g;
/** `(await import('./x.ts')).a`, `typeof import('./x.ts').a`, `import('./x.ts').then(({ a }) => …`. */
const PICKED = /import\(\s*'(\.[^']+)',?\s*\)\)?\s*\.(?:then\(\(\{ ([^}]*) \}\)|(\w+))/g;
/** `import * as x from './x.ts'`, `export * from './x.ts'`, `vi.mock`, and anything else that uses a whole module. */
const WHOLE = /(?:\* (?:as \w+ )?from |(?<!\{[^{}]*\}[^=]*= await )import\(\s*)'(\.[^']+)',?(?!\s*\)\)?\s*\.)/g;

/** Returns the names in braces as the other file exports them: `a, type b as c` → `a`, `b`. */
function namesIn(braces: string): string[] {
  return braces
    .split(',')
    .map((item) => item.trim().replace(/^type /, ''))
    .filter((item) => item !== '')
    .map((item) => item.split(/ as |:/)[0]?.trim() ?? '');
}

/** Returns the names that a file exports. */
export function exportsOf(text: string): string[] {
  const listed = [...text.matchAll(LISTED)].flatMap(([, braces = '']) =>
    braces
      .split(',')
      .map((item) => item.trim().replace(/^type /, ''))
      .filter((item) => item !== '')
      .map((item) => item.split(' as ').at(-1) ?? ''),
  );
  return [...[...text.matchAll(DECLARED)].map(([, name = '']) => name), ...listed];
}

/** Returns names that more than one file declares and exports, with the files. */
export function declaredTwice(files: readonly { readonly file: string; readonly text: string }[]): string[] {
  const places = new Map<string, string[]>();
  for (const { file, text } of files)
    for (const [, name = ''] of text.matchAll(DECLARED)) places.set(name, [...(places.get(name) ?? []), file]);
  return [...places].filter(([, at]) => at.length > 1).map(([name, at]) => `${name}: ${at.join(', ')}`);
}

/** Returns the names that a file imports, by the paths of the exporting files. `*` means all. */
export function usesOf(path: string, text: string): Export[] {
  const at = (specifier: string): string => normalize(join(dirname(path), specifier));
  const uses: Export[] = [];
  const add = (specifier: string, names: readonly string[]): void => {
    for (const name of names) uses.push({ file: at(specifier), name });
  };
  for (const [, braces = '', from = ''] of text.matchAll(NAMED)) add(from, namesIn(braces));
  for (const [, braces = '', from = ''] of text.matchAll(DESTRUCTURED)) add(from, namesIn(braces));
  for (const [, from = '', braces, name = ''] of text.matchAll(PICKED)) {
    add(from, braces === undefined ? [name] : namesIn(braces));
  }
  for (const [, from = ''] of text.matchAll(WHOLE)) add(from, ['*']);
  return uses;
}

/** Whether a text contains a name more than once outside comments: where it is declared, and where it is used. */
export function usesOwn(text: string, name: string): boolean {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');
  return [...code.matchAll(new RegExp(`(?<!\\w)${name}(?!\\w)`, 'g'))].length > 1;
}

/** Returns exports of files under `folders` that no file under `users` imports. */
export function unusedExports(folders: readonly string[], users: readonly string[]): Export[] {
  const imported = new Set(
    users
      .flatMap((folder) => sourcesUnder(folder))
      .flatMap((path) => usesOf(path, textOf(path)))
      .map(({ file, name }) => `${file} ${name}`),
  );
  return folders
    .flatMap((folder) => sourcesUnder(folder))
    .filter((file) => !imported.has(`${file} *`))
    .flatMap((file) => exportsOf(textOf(file)).map((name) => ({ file, name })))
    .filter(({ file, name }) => !imported.has(`${file} ${name}`));
}
