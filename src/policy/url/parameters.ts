/** A query, taken apart. */
import { decodeOnce } from '../../domain/canonical-url.ts';
import type { TokenIndex } from './tokens.ts';

/** Name and value are decoded once. */
export interface Parameter {
  readonly name: string;
  readonly value: string;
  /** Token lists that the name is in. */
  readonly lists: readonly number[];
  /** Whether it can be no place: the name is in no list, and neither it nor the value has a slash, a backslash or a colon. */
  readonly isTame: boolean;
}

export const NO_PARAMETERS: readonly Parameter[] = Object.freeze([]);

/** The parameters of a query. Some servers part them at `;` as well: what stands between those counts, too, beside the whole. */
export function parametersOf(query: string, tokens: TokenIndex): readonly Parameter[] {
  if (query === '') return NO_PARAMETERS;
  const parameters: Parameter[] = [];
  const hasSemicolon = query.includes(';');
  for (let start = 0; start < query.length; ) {
    let end = query.indexOf('&', start);
    if (end < 0) end = query.length;
    if (end > start) {
      const text = query.slice(start, end);
      parameters.push(parameterOf(text, tokens));
      if (hasSemicolon && text.includes(';'))
        for (const piece of text.split(';')) parameters.push(parameterOf(piece, tokens));
    }
    start = end + 1;
  }
  return parameters;
}

function parameterOf(text: string, tokens: TokenIndex): Parameter {
  const equals = text.indexOf('=');
  const name = decodeForm(equals < 0 ? text : text.slice(0, equals));
  const value = equals < 0 ? '' : decodeForm(text.slice(equals + 1));
  // A second question mark is the first one's to some servers.
  const start = name.charCodeAt(0) === 0x3f ? name.search(/[^?]|$/) : 0;
  const lists = tokens.find(name, start, name.length);
  return { name, value, lists, isTame: lists.length === 0 && !hasPlaceSign(name) && !hasPlaceSign(value) };
}

function hasPlaceSign(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2f || code === 0x3a || code === 0x5c) return true;
  }
  return false;
}

/** Decodes a form field: `+` is a space, percent escapes are UTF-8. */
export function decodeForm(text: string): string {
  return decodeOnce(text.includes('+') ? text.replaceAll('+', ' ') : text);
}
