/** Detects repeated names in a JSON object, of which `JSON.parse` silently keeps the last. */
import { BACKSLASH, COLON, QUOTE } from '../bytes/ascii.ts';

/**
 * Whether an object of the document has a name twice: then the text has more colons outside strings than the parsed value has members.
 * Only counts, because it runs on every line of a drop. `readJson` reports where the names are.
 *
 * @param text valid JSON.
 * @param value the result of `JSON.parse`.
 */
export function hasRepeatedName(text: string, value: object): boolean {
  return colonsOutsideStrings(text) !== countMembers(value);
}

function colonsOutsideStrings(text: string): number {
  let colons = 0;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) isString = !isString;
    else if (isString && code === BACKSLASH) i++;
    else if (!isString && code === COLON) colons++;
  }
  return colons;
}

function countMembers(value: object): number {
  let members = 0;
  const open: object[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const children: unknown[] = Object.values(next);
    if (!Array.isArray(next)) members += children.length;
    for (const child of children) if (typeof child === 'object' && child !== null) open.push(child);
  }
  return members;
}
