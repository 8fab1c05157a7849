/** Settings, nested as in the configuration file: `{ "server": { "port": 8080 } }`. */
import { settings } from '../schema.ts';

export type Tree = { [name: string]: unknown };

/** Sets the value at a path: section and name, or only a name. */
export function setSetting(tree: Tree, path: readonly string[], value: unknown): void {
  const [section, name] = path;
  if (name === undefined) tree[section!] = value;
  else tree[section!] = { ...(tree[section!] as Tree | undefined), [name]: value };
}

/** Merges the settings of one source into those of earlier sources; later ones win. */
export function mergeSettings(into: Tree, from: Tree): void {
  for (const setting of settings) {
    const value = valueAt(from, setting.path);
    if (value !== undefined) setSetting(into, setting.path, value);
  }
}

/** Returns the value at a path; undefined if the tree has none there. */
export function valueAt(tree: Tree, path: readonly string[]): unknown {
  let value: unknown = tree;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Tree)[name];
  }
  return value;
}
