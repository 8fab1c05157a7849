/**
 * Parses URLs as the URL standard does, so that the judged URL is the one that an agent's HTTP client connects to. Flags record how the
 * value was spelled, because only attackers use some spellings.
 */

import { AMPERSAND, BACKSLASH, DOT, NINE, NUMBER_SIGN, OPENING_BRACKET, QUESTION_MARK, SLASH } from '../bytes/ascii.ts';
import { LIMITS } from '../limits.ts';
import { hidesTraversal } from './dot-segments.ts';
import { type HostProblem, plainHostEnd, problemOfUnparsable } from './host-key.ts';
import { isEncodedTwice, percentDecodeOnce } from './percent-decode.ts';

export type HostKind = 'domain' | 'ipv4' | 'ipv6';

/** Flags for unusual spellings of a URL before it was made canonical. */
export const SPELLING = {
  /** A control character, or whitespace around or inside the value, that the parser silently removes. */
  control_character: 1,
  /** A percent escape in the host. */
  host_escape: 2,
  /** An IPv4 address in a form other than four decimal numbers. */
  obfuscated_address: 4,
  /** A backslash before or right after the authority: clients disagree about the host. */
  backslash: 8,
  /** Path or query still contain a percent escape after one decoding (`%252e`, `%25%32%65`). */
  double_encoding: 16,
  /** The path, decoded once, contains a backslash, a control character or dot segments, even disguised ones. */
  encoded_traversal: 32,
} as const;

/** A URL in canonical form. Unless noted otherwise, strings are serialized as in the URL standard. */
export interface CanonicalUrl {
  /** Lower case, without the colon. */
  readonly scheme: string;
  readonly hasUserinfo: boolean;
  /** A domain without its trailing dot, or an IP address, IPv6 in brackets. */
  readonly host: string;
  readonly hostKind: HostKind;
  /** The port that a client connects to; 0 if the scheme has no default port and the URL names none. */
  readonly port: number;
  /** Starts with a slash for http and https. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Without the number sign. Clients do not send the fragment. */
  readonly fragment: string;
  /** The path, percent-decoded once; see {@link percentDecodeOnce}. */
  readonly decodedPath: string;
  /** Flags of {@link SPELLING}. */
  readonly spelling: number;
  /** The whole serialized URL, including userinfo and fragment. */
  readonly href: string;
  /** Offset in `decodedPath` where the path ends for a server that decodes before it parses; see {@link queryStartIn}. -1 if it does not end early. */
  readonly queryMark: number;
  /** Whether the value was already canonical: an ordinary host, no port, no userinfo, no escapes. */
  readonly isPlain: boolean;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, ftp: 21 };

/** For each ASCII code: 1 = literal in path, query and fragment; 2 = slash, 3 = dot, 4 = `?`, 5 = `#`, 0 = needs the full parser. */
const PLAIN = new Uint8Array(128);
for (const char of 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~!$&()*+,;=:@') {
  PLAIN[char.charCodeAt(0)] = 1;
}
PLAIN['/'.charCodeAt(0)] = 2;
PLAIN['.'.charCodeAt(0)] = 3;
PLAIN['?'.charCodeAt(0)] = 4;
PLAIN['#'.charCodeAt(0)] = 5;

/**
 * Parses an absolute URL as the URL standard does. Returns `undefined` if that parser fails, or if the host has so many dots that parsing
 * would take long.
 */
export function parseUrl(value: string): CanonicalUrl | undefined {
  const hostStart = webHostStart(value);
  return (hostStart > 0 ? parsePlainUrl(value, hostStart) : undefined) ?? parseUnusualUrl(value);
}

/** Returns the offset after `https://` or `http://` at the start of a value; 0 if it begins with neither. */
export function webHostStart(value: string): number {
  // The look at one character spares most values the comparisons, which take longer.
  if (value.length < SECURE.length) return 0;
  if (value.charCodeAt(SECURE.length - 1) === SLASH && value.startsWith(SECURE)) return SECURE.length;
  return value.charCodeAt(PLAINTEXT.length - 1) === SLASH && value.startsWith(PLAINTEXT) ? PLAINTEXT.length : 0;
}

const SECURE = 'https://';
const PLAINTEXT = 'http://';

/**
 * The fast path: parses an http or https URL that is already canonical. `hostStart` is that of {@link webHostStart}; 0 stands for https.
 * Returns `undefined` if the value needs {@link parseUnusualUrl}, so also for every other scheme and for userinfo.
 */
export function parsePlainUrl(value: string, hostStart: number): CanonicalUrl | undefined {
  const isHttps = hostStart !== PLAINTEXT.length;
  const hostEnd = plainHostEnd(value, hostStart);
  if (hostEnd < 0) return undefined;
  const size = value.length;
  const hasPath = hostEnd < size;
  let at = hostEnd;
  let code = 0;
  let mark = -1;
  for (; at < size; at++) {
    code = value.charCodeAt(at);
    const kind = code < 128 ? PLAIN[code]! : 0;
    if (kind === 1) {
      if (code === AMPERSAND && mark < 0) mark = at - hostEnd;
    } else if (kind === 0) return undefined;
    else if (kind === 2) {
      if (at + 1 < size && value.charCodeAt(at + 1) === DOT) return undefined;
    } else if (kind > 3) break;
  }
  const queryAt = at < size && code === QUESTION_MARK ? at : -1;
  let fragmentAt = at < size && code === NUMBER_SIGN ? at : -1;
  for (at++; at < size; at++) {
    code = value.charCodeAt(at);
    if (code >= 128 || PLAIN[code] === 0) return undefined;
    if (code === NUMBER_SIGN && fragmentAt < 0) fragmentAt = at;
  }
  const end = fragmentAt < 0 ? value.length : fragmentAt;
  const pathEnd = queryAt < 0 ? end : queryAt;
  const path = hasPath ? value.slice(hostEnd, pathEnd) : '/';
  const href = hasPath ? value : `${value}/`;
  return {
    scheme: isHttps ? 'https' : 'http',
    hasUserinfo: false,
    host: value.slice(hostStart, hostEnd),
    hostKind: 'domain',
    port: isHttps ? 443 : 80,
    path,
    query: queryAt < 0 ? '' : value.slice(queryAt + 1, end),
    fragment: fragmentAt < 0 ? '' : value.slice(fragmentAt + 1),
    decodedPath: path,
    spelling: 0,
    href: hostStart === 0 ? `https://${href}` : href,
    // A plain path contains neither `?` nor `#`, so `&` is the only possible mark.
    queryMark: mark,
    isPlain: true,
  };
}

/** Returns the offset in a decoded text where a query or fragment may begin (`?`, `#`, or `&` before a parameter in a path); -1 if there is none. */
export function queryStartIn(text: string): number {
  return text.search(/[?#&]/);
}

/** Whether the path in a URL's `bytes[start, end)`, up to the first `?` or `#`, is spelled as the full parser would serialize it. */
export function isPlainPath(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start, before = 0; at < end; at++) {
    const code = bytes[at]!;
    const kind = code < 128 ? PLAIN[code]! : 0;
    if (kind === 4 || kind === 5) return true;
    if (kind === 0 || (kind === 3 && before === 2)) return false;
    before = kind;
  }
  return true;
}

/** The full parser, for all other values: uses the platform's URL and determines the spelling flags. Returns `undefined` as {@link parseUrl} does. */
export function parseUnusualUrl(value: string): CanonicalUrl | undefined {
  const hasControl = CONTROL.test(value);
  const authority = rawAuthority(hasControl ? stripped(value) : value);
  const sentHost = rawHost(authority);
  if (hasTooManyDots(sentHost)) return undefined;
  const url = URL.parse(value);
  if (url === null) return undefined;
  const scheme = url.protocol.slice(0, -1);
  const hostname = canonicalHostname(url, scheme);
  if (hostname === undefined) return undefined;
  // Removes one trailing dot. A second one is an empty label, which `keyFromCanonicalHost` refuses.
  const host = hostname.endsWith('.') && /[^.]\.$/.test(hostname) ? hostname.slice(0, -1) : hostname;
  const hostKind = hostKindOf(host);
  const path = url.pathname;
  const query = url.search.slice(1);
  const decodedPath = percentDecodeOnce(path);
  return {
    scheme,
    hasUserinfo: url.username !== '' || url.password !== '' || authority.includes('@'),
    host,
    hostKind,
    port: url.port === '' ? (DEFAULT_PORTS[scheme] ?? 0) : Number(url.port),
    path,
    query,
    fragment: url.hash.slice(1),
    decodedPath,
    spelling: spellingOf(value, hasControl, sentHost, hostKind, host) | encodingOf(path, query, decodedPath),
    href: url.href,
    queryMark: queryStartIn(decodedPath),
    isPlain: false,
  };
}

/** Returns what is wrong with a URL for which {@link parseUrl} finds no host. */
export function problemOfUrl(value: string): HostProblem {
  const host = rawHost(rawAuthority(stripped(value))).replace(/:[0-9]*$/, '');
  if (hasTooManyDots(host)) return 'too_long';
  // If the host itself parses, the port is wrong.
  return URL.canParse(`https://${host}/`) ? 'unparsable' : problemOfUnparsable(host);
}

/** The four characters that UTS #46 treats as a dot in a name. */
const NAME_DOT = /[.\u3002\uff0e\uff61]/;

/**
 * Whether a host has more dots than a name may have characters. No such name exists, and the platform's parser would need a millisecond
 * for 8 KB of non-ASCII dots.
 */
function hasTooManyDots(host: string): boolean {
  const tooMany = LIMITS.domainBytes.value + 1;
  return host.length >= tooMany && host.split(NAME_DOT, tooMany + 1).length > tooMany;
}

function hostKindOf(host: string): HostKind {
  if (host === '') return 'domain';
  const first = host.charCodeAt(0);
  if (first === OPENING_BRACKET) return 'ipv6';
  return first <= NINE && /^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$/.test(host) ? 'ipv4' : 'domain';
}

/** Returns the host as it is parsed for http, even for schemes whose hosts the standard does not normalize. */
function canonicalHostname({ hostname }: URL, scheme: string): string | undefined {
  if (scheme === 'http' || scheme === 'https' || hostname === '') return hostname;
  return URL.parse(`https://${hostname}/`)?.hostname;
}

// Every space or control character that the standard's parser strips from the ends or removes from the middle.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\0-\x1f\x7f]|^ | $/;

/** Returns the authority (userinfo, host and port) of a value without the characters that the parser ignores. */
function rawAuthority(text: string): string {
  const start = authorityStart(text);
  return text.slice(start, authorityEnd(text, start));
}

function authorityStart(text: string): number {
  let start = text.indexOf(':') + 1;
  while (start < text.length && (text.charCodeAt(start) === SLASH || text.charCodeAt(start) === BACKSLASH)) start++;
  return start;
}

function authorityEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && !endsAuthority(text.charCodeAt(end))) end++;
  return end;
}

function endsAuthority(code: number): boolean {
  return code === SLASH || code === BACKSLASH || code === QUESTION_MARK || code === NUMBER_SIGN;
}

/** Removes the characters that the parser ignores. Loops trim the ends: a pattern for the trailing run would start again at every space. */
function stripped(value: string): string {
  let end = value.length;
  while (end > 0 && value.charCodeAt(end - 1) <= 0x20) end--;
  let start = 0;
  while (start < end && value.charCodeAt(start) <= 0x20) start++;
  return value.slice(start, end).replace(/[\t\n\r]/g, '');
}

/** Returns the host and port of an authority, as they were sent. */
function rawHost(authority: string): string {
  return authority.slice(authority.lastIndexOf('@') + 1);
}

function spellingOf(value: string, hasControl: boolean, sentHost: string, hostKind: HostKind, host: string): number {
  let bits = hasControl ? SPELLING.control_character : 0;
  if (sentHost.includes('%') && hostKind !== 'ipv6') bits |= SPELLING.host_escape;
  if (hostKind === 'ipv4' && sentHost.replace(/:[0-9]*$/, '') !== host) bits |= SPELLING.obfuscated_address;
  if (hasBackslashAuthority(value)) bits |= SPELLING.backslash;
  return bits;
}

/** Whether a backslash marks the beginning or the end of the host. */
function hasBackslashAuthority(value: string): boolean {
  const backslash = value.indexOf('\\');
  if (backslash < 0) return false;
  const text = stripped(value);
  const start = authorityStart(text);
  const slashes = text.slice(text.indexOf(':') + 1, start);
  return slashes.includes('\\') || text.charCodeAt(authorityEnd(text, start)) === BACKSLASH;
}

function encodingOf(path: string, query: string, decodedPath: string): number {
  let bits = 0;
  if (isEncodedTwice(path, decodedPath) || isEncodedTwice(query)) bits |= SPELLING.double_encoding;
  if (hidesTraversal(decodedPath)) bits |= SPELLING.encoded_traversal;
  return bits;
}
