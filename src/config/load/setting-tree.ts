/** Settings as they are nested in a file: `{ "server": { "port": 8080 } }`. */
import { settings } from '../schema.ts';

export type Tree = { [name: string]: unknown };

/** Sets the value at a path of a section and a name, or of a name alone. */
export function setSetting(tree: Tree, path: readonly string[], value: unknown): void {
  const [section, name] = path;
  if (name === undefined) tree[section!] = value;
  else tree[section!] = { ...(tree[section!] as Tree | undefined), [name]: value };
}

/** Puts the settings of one source over those of the sources before it. */
export function mergeSettings(into: Tree, from: Tree): void {
  for (const setting of settings) {
    const value = valueAt(from, setting.path);
    if (value !== undefined) setSetting(into, setting.path, value);
  }
}

/** The value at a path; undefined where the tree does not reach so far. */
export function valueAt(tree: Tree, path: readonly string[]): unknown {
  let value: unknown = tree;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Tree)[name];
  }
  return value;
}
