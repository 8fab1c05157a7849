/** A query, taken apart. */
import { decodeOnce } from '../../domain/canonical-url.ts';
import type { TokenIndex } from './tokens.ts';

/** Name and value are decoded once. */
export interface Parameter {
  readonly name: string;
  readonly value: string;
  /** Token lists that the name is in. */
  readonly lists: readonly number[];
}

export const NO_PARAMETERS: readonly Parameter[] = Object.freeze([]);

/** The parameters of a query. Some servers part them at `;` as well: what stands between those counts, too, beside the whole. */
export function parametersOf(query: string, tokens: TokenIndex): readonly Parameter[] {
  if (query === '') return NO_PARAMETERS;
  const parameters: Parameter[] = [];
  for (let start = 0; start < query.length; ) {
    let end = query.indexOf('&', start);
    if (end < 0) end = query.length;
    if (end > start) {
      const text = query.slice(start, end);
      parameters.push(parameterOf(text, tokens));
      if (text.includes(';')) for (const piece of text.split(';')) parameters.push(parameterOf(piece, tokens));
    }
    start = end + 1;
  }
  return parameters;
}

function parameterOf(text: string, tokens: TokenIndex): Parameter {
  const equals = text.indexOf('=');
  const name = decodeForm(equals < 0 ? text : text.slice(0, equals));
  const value = equals < 0 ? '' : decodeForm(text.slice(equals + 1));
  return { name, value, lists: tokens.find(name, 0, name.length) };
}

/** Decodes a form field: `+` is a space, percent escapes are UTF-8. */
export function decodeForm(text: string): string {
  return decodeOnce(text.includes('+') ? text.replaceAll('+', ' ') : text);
}
