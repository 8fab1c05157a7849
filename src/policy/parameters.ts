/** The query of a URL as parameters, and what stands in the path or in the fragment as one. */
import { type CanonicalUrl, decodeOnce } from '../domain/canonical-url.ts';

/** The query, and before it what stands in the path as one: `/a%3Fpage=login`, `/a&page=login`. */
export function wholeQuery({ decodedPath, query, queryMark }: CanonicalUrl): string {
  // Words alone may be the rest of a title: `What_is_a_login?_Login`.
  if (queryMark < 0 || !decodedPath.includes('=', queryMark)) return query;
  const inPath = decodedPath.slice(queryMark + 1);
  return query === '' ? inPath : `${inPath}&${query}`;
}

/**
 * The query of a route in the fragment (`#/?page=login`, `#!x?a=b`, `#?a=b`); empty where there is none. Its `id` is left out: viewers of
 * documentation write the name of a heading there.
 */
export function fragmentQuery({ fragment }: CanonicalUrl): string {
  const first = fragment[0];
  if (first !== '/' && first !== '!' && first !== '?') return '';
  const mark = fragment.indexOf('?');
  return mark < 0 ? '' : fragment.slice(mark + 1).replaceAll(/(?<=^|&)id=[^&]*/g, '');
}

interface Parameters {
  readonly query: string;
  readonly names: readonly string[];
  readonly values: readonly string[];
}

// Several rules read the same query one after the other; it is taken apart once.
let latest: Parameters = { query: '', names: [], values: [] };

function parametersOf(query: string): Parameters {
  if (latest.query === query) return latest;
  const names: string[] = [];
  const values: string[] = [];
  for (let start = 0; start < query.length; ) {
    let end = query.indexOf('&', start);
    if (end < 0) end = query.length;
    if (end > start) {
      const parameter = query.slice(start, end);
      addParameter(parameter, names, values);
      // Some servers part parameters at `;` as well: what stands between those counts, too, beside the whole.
      if (parameter.includes(';')) for (const piece of parameter.split(';')) addParameter(piece, names, values);
    }
    start = end + 1;
  }
  latest = { query, names, values };
  return latest;
}

function addParameter(parameter: string, names: string[], values: string[]): void {
  const equals = parameter.indexOf('=');
  names.push(decodeForm(equals < 0 ? parameter : parameter.slice(0, equals)));
  values.push(equals < 0 ? '' : decodeForm(parameter.slice(equals + 1)));
}

/** Calls back for every parameter of a query, name and value decoded once; where one holds `;`, for the pieces between, too. */
export function eachParameter(query: string, visit: (name: string, value: string) => void): void {
  const { names, values } = parametersOf(query);
  for (let at = 0; at < names.length; at++) visit(names[at]!, values[at]!);
}

/** Decodes a form field: `+` is a space, percent escapes are UTF-8. */
export function decodeForm(text: string): string {
  return decodeOnce(text.includes('+') ? text.replaceAll('+', ' ') : text);
}
