/**
 * The query of a request, read strictly: what is sent twice, what nobody knows and what is not well encoded is refused instead of
 * guessed at. A guardrail that reads a query differently from its caller judges another URL.
 */
import { isOverlong, withoutOuterBlanks } from '../../domain/target.ts';
import type { ErrorCode } from '../../errors.ts';
import { HTTP_TOKEN } from '../../network/http-syntax.ts';

/** A query, taken apart. `problem` is the first thing that is wrong with it; the key is found all the same. */
export interface Query {
  /** How often a key was sent; a value that is not well encoded counts. */
  apiKeyCount: number;
  /** Undefined for a value that is not well encoded, which is no account's key. */
  apiKey: string | undefined;
  /** Without the blanks around them, as `url` is. */
  domain: string | undefined;
  url: string | undefined;
  method: string | undefined;
  problem: ErrorCode | undefined;
  /** The parameter that the problem is about, for the message. */
  parameter: string;
}

/** Reads the part of a request target after the first `?`. Never throws. */
export function parseQuery(raw: string): Query {
  const query: Query = {
    apiKeyCount: 0,
    apiKey: '',
    domain: undefined,
    url: undefined,
    method: undefined,
    problem: undefined,
    parameter: '',
  };
  for (let start = 0; start <= raw.length; ) {
    const ampersand = raw.indexOf('&', start);
    const end = ampersand === -1 ? raw.length : ampersand;
    if (end > start) readParameter(query, raw.slice(start, end));
    start = end + 1;
  }
  return query;
}

/** The known parameters. As constants they are also the properties of a {@link Query}. */
const NAMES = ['url', 'domain', 'method', 'api_key'] as const;

function readParameter(query: Query, piece: string): void {
  const equals = piece.indexOf('=');
  const name = nameOf(piece, equals === -1 ? piece.length : equals);
  const decoded = equals === -1 ? '' : decode(piece.slice(equals + 1));
  if (name === 'api_key') {
    query.apiKeyCount += 1;
    query.apiKey = decoded;
    return;
  }
  if (name === undefined || decoded === undefined) {
    note(query, 'bad_encoding', name ?? '');
    return;
  }
  if (name !== 'domain' && name !== 'url' && name !== 'method') {
    note(query, 'unknown_parameter', name);
    return;
  }
  if (query[name] !== undefined) {
    note(query, 'repeated_parameter', name);
    return;
  }
  const value = name === 'method' ? decoded : withoutOuterBlanks(decoded);
  if (isOverlong(value)) note(query, 'input_too_long', name);
  if (name === 'method' && !HTTP_TOKEN.test(value)) note(query, 'bad_method', name);
  query[name] = value;
}

/** The name that a parameter begins with, decoded; a known one that is written plainly without a copy. */
function nameOf(piece: string, end: number): string | undefined {
  for (const name of NAMES) if (name.length === end && piece.startsWith(name)) return name;
  return decode(piece.slice(0, end));
}

/** Keeps the first problem. */
function note(query: Query, problem: ErrorCode, parameter: string): void {
  if (query.problem !== undefined) return;
  query.problem = problem;
  query.parameter = parameter;
}

/** Percent-decoding with `+` as a space; undefined for a malformed escape or bytes that are not UTF-8. */
function decode(text: string): string | undefined {
  if (isDecoded(text)) return text;
  // The transport replaces raw bytes that are not UTF-8 by U+FFFD.
  if (text.includes('\ufffd')) return undefined;
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

/** Whether a text is ASCII and stands for itself. */
function isDecoded(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x25 || code === 0x2b || code > 0x7e) return false;
  }
  return true;
}
