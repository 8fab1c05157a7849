/**
 * Parses the query of a request strictly: repeated, unknown and badly encoded parameters are refused, not guessed at. A guardrail that
 * parses a query differently from its caller would judge another URL.
 */
import { isOverlong, withoutOuterBlanks } from '../../domain/target.ts';
import type { ErrorCode } from '../../errors.ts';
import { HTTP_TOKEN } from '../../network/http-syntax.ts';

/** A parsed query. `problem` is its first problem; the key is read in any case. */
export interface Query {
  /** Number of keys in the query, including badly encoded ones. */
  apiKeyCount: number;
  /** Undefined if the value is badly encoded, which no key is. */
  apiKey: string | undefined;
  /** Trimmed, like `url`. */
  domain: string | undefined;
  url: string | undefined;
  method: string | undefined;
  problem: ErrorCode | undefined;
  /** The parameter at fault, for the message. */
  parameter: string;
}

/** Parses the part of a request target after the first `?`. Never throws. */
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

/** The known parameters. */
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

/** Returns a parameter's decoded name. A known name that is not encoded is returned without a copy. */
function nameOf(piece: string, end: number): string | undefined {
  for (const name of NAMES) if (name.length === end && piece.startsWith(name)) return name;
  return decode(piece.slice(0, end));
}

/** Stores the first problem. */
function note(query: Query, problem: ErrorCode, parameter: string): void {
  if (query.problem !== undefined) return;
  query.problem = problem;
  query.parameter = parameter;
}

/** Percent-decodes a text, with `+` as a space. Undefined for a malformed escape or bytes that are not UTF-8. */
function decode(text: string): string | undefined {
  if (isDecoded(text)) return text;
  // The transport replaces raw bytes that are not UTF-8 with U+FFFD.
  if (text.includes('\ufffd')) return undefined;
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

/** Whether a text is ASCII and contains nothing to decode. */
function isDecoded(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x25 || code === 0x2b || code > 0x7e) return false;
  }
  return true;
}
