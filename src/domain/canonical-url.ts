/**
 * One reading of a URL for everybody: the URL standard's, so that what is judged is what an agent's HTTP client connects to.
 * How the value was spelled is kept beside it as flags, because some spellings serve nobody but an attacker.
 */

import { AMPERSAND, DOT, NUMBER_SIGN, QUESTION_MARK } from '../bytes/ascii.ts';
import { LIMITS } from '../limits.ts';
import { hidesTraversal } from './dot-segments.ts';
import { type HostProblem, isPlainHost, problemOfUnparsable } from './host-key.ts';
import { isEncodedTwice, percentDecodeOnce } from './percent-decode.ts';

export type HostKind = 'domain' | 'ipv4' | 'ipv6';

/** Bits that tell how a URL was spelled before it was made canonical. */
export const SPELLING = {
  /** A control character, or blank space around or inside the value, that the parser silently removes. */
  control_character: 1,
  /** A percent escape in the host. */
  host_escape: 2,
  /** An IPv4 address in any other form than four decimal numbers. */
  obfuscated_address: 4,
  /** A backslash before or right after the authority: clients disagree about which host that is. */
  backslash: 8,
  /** Decoded once, path or query still holds an escape (`%252e`, `%25%32%65`). */
  double_encoding: 16,
  /** After one decoding the path holds dot segments, whatever they are hidden behind, a backslash or a control character. */
  encoded_traversal: 32,
} as const;

/** A URL in canonical form. Strings are as the URL standard writes them, unless said otherwise. */
export interface CanonicalUrl {
  /** Lower case, without the colon. */
  readonly scheme: string;
  readonly hasUserinfo: boolean;
  /** The host; a domain without its trailing dot, an IPv6 address in brackets. */
  readonly host: string;
  readonly hostKind: HostKind;
  /** The port a client connects to; 0 where the scheme has none. */
  readonly port: number;
  /** Starts with a slash for http and https. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Without the number sign. A fragment never leaves the client. */
  readonly fragment: string;
  /** The path with its percent escapes decoded once, see {@link percentDecodeOnce}. */
  readonly decodedPath: string;
  /** Bits of {@link SPELLING}. */
  readonly spelling: number;
  /** The whole URL as the standard writes it, userinfo and fragment included. */
  readonly href: string;
  /** Where in `decodedPath` a server that decodes before it looks sees the end of the path, see {@link queryStartIn}; -1 where it does not. */
  readonly queryMark: number;
  /** Whether the value was canonical as it stood: an ordinary host, no port, no userinfo, no escapes. */
  readonly isPlain: boolean;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, ftp: 21 };

/** For each ASCII code: 1 = stands for itself in path, query and fragment; 2 = slash, 3 = dot, 4 = `?`, 5 = `#`, 0 = look closer. */
const PLAIN = new Uint8Array(128);
for (const char of 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~!$&()*+,;=:@') {
  PLAIN[char.charCodeAt(0)] = 1;
}
PLAIN['/'.charCodeAt(0)] = 2;
PLAIN['.'.charCodeAt(0)] = 3;
PLAIN['?'.charCodeAt(0)] = 4;
PLAIN['#'.charCodeAt(0)] = 5;

/** Reads a URL (absolute, with its scheme) as the URL standard does; `undefined` where the standard's parser fails or would work long for no host. */
export function parseUrl(value: string): CanonicalUrl | undefined {
  if (value.startsWith('https://')) return parsePlainUrl(value, true, 8) ?? parseAnyUrl(value);
  return (value.startsWith('http://') ? parsePlainUrl(value, false, 7) : undefined) ?? parseAnyUrl(value);
}

/** Reads a URL that lacks its scheme: as {@link parseUrl} does with `https://` before it. */
export function parseBareUrl(value: string): CanonicalUrl | undefined {
  return parsePlainUrl(value, true, 0) ?? parseAnyUrl(`https://${value}`);
}

/**
 * The fast path: an http or https URL that is canonical as it stands, with its host at `hostStart`, which is 0 where the scheme is left
 * out. `undefined` sends the caller to the full parser.
 */
function parsePlainUrl(value: string, isHttps: boolean, hostStart: number): CanonicalUrl | undefined {
  const slash = value.indexOf('/', hostStart);
  const hostEnd = slash < 0 ? value.length : slash;
  if (!isPlainHost(value, hostStart, hostEnd)) return undefined;
  const size = value.length;
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
  const path = slash < 0 ? '/' : value.slice(hostEnd, pathEnd);
  const href = slash < 0 ? `${value}/` : value;
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
    // A plain path holds none of the other marks.
    queryMark: mark,
    isPlain: true,
  };
}

/** Where in a decoded text a query or a fragment would begin: `?`, `#`, and `&` where a path becomes a parameter; -1 where nothing does. */
export function queryStartIn(text: string): number {
  return text.search(/[?#&]/);
}

/** Whether the path that begins at `start` of a URL's bytes stands there as the full parser would write it, up to `end`, `?` or `#`. */
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

/** The full parser: the platform's URL, and a look at how the value was spelled. */
function parseAnyUrl(value: string): CanonicalUrl | undefined {
  const authority = rawAuthority(value);
  const sentHost = rawHost(authority);
  if (hasTooManyDots(sentHost)) return undefined;
  const url = URL.parse(value);
  if (url === null) return undefined;
  const scheme = url.protocol.slice(0, -1);
  const hostname = canonicalHostname(url);
  if (hostname === undefined) return undefined;
  // One dot goes; a second one is an empty label, which the key refuses.
  const host = /[^.]\.$/.test(hostname) ? hostname.slice(0, -1) : hostname;
  const hostKind = host.startsWith('[') ? 'ipv6' : /^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$/.test(host) ? 'ipv4' : 'domain';
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
    spelling: spellingOf(value, sentHost, hostKind, host) | encodingOf(path, query, decodedPath),
    href: url.href,
    queryMark: queryStartIn(decodedPath),
    isPlain: false,
  };
}

/** What is wrong with a URL that {@link parseUrl} finds no host in. */
export function problemOfUrl(value: string): HostProblem {
  const host = rawHost(rawAuthority(value)).replace(/:[0-9]*$/, '');
  if (hasTooManyDots(host)) return 'too_long';
  // Then it is the port.
  return URL.canParse(`https://${host}/`) ? 'unparsable' : problemOfUnparsable(host);
}

/** The four characters that are a dot of a name (UTS #46). */
const NAME_DOT = /[.\u3002\uff0e\uff61]/;

/**
 * Whether a host has more dots than a name may have characters. No such name exists, and the platform's parser would take a millisecond
 * for 8 KB of international ones.
 */
function hasTooManyDots(host: string): boolean {
  const tooMany = LIMITS.domainBytes.value + 1;
  return host.length >= tooMany && host.split(NAME_DOT, tooMany + 1).length > tooMany;
}

/** The host as http would read it, also for schemes whose hosts the standard leaves as they are. */
function canonicalHostname(url: URL): string | undefined {
  if (url.protocol === 'http:' || url.protocol === 'https:' || url.hostname === '') return url.hostname;
  return URL.parse(`https://${url.hostname}/`)?.hostname;
}

// Every blank or control character that the standard's parser strips from the ends or takes out of the middle.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\0-\x1f\x7f]|^ | $/;

/** What stands between the scheme's slashes and the path, as it was sent. */
function rawAuthority(value: string): string {
  const text = value.length > 8 && !CONTROL.test(value) ? value : stripped(value);
  let start = text.indexOf(':') + 1;
  while (text[start] === '/' || text[start] === '\\') start++;
  let end = start;
  while (end < text.length && !'/\\?#'.includes(text[end]!)) end++;
  return text.slice(start, end);
}

/** The value without what the parser ignores. The trailing run is cut by hand: a pattern would try it at every blank. */
function stripped(value: string): string {
  let end = value.length;
  while (end > 0 && value.charCodeAt(end - 1) <= 0x20) end--;
  let start = 0;
  while (start < end && value.charCodeAt(start) <= 0x20) start++;
  return value.slice(start, end).replace(/[\t\n\r]/g, '');
}

/** The host with its port, as it was sent: what follows a user's name. */
function rawHost(authority: string): string {
  return authority.slice(authority.lastIndexOf('@') + 1);
}

function spellingOf(value: string, sentHost: string, hostKind: HostKind, host: string): number {
  let bits = CONTROL.test(value) ? SPELLING.control_character : 0;
  if (sentHost.includes('%') && hostKind !== 'ipv6') bits |= SPELLING.host_escape;
  if (hostKind === 'ipv4' && sentHost.replace(/:[0-9]*$/, '') !== host) bits |= SPELLING.obfuscated_address;
  if (hasBackslashAuthority(value)) bits |= SPELLING.backslash;
  return bits;
}

/** Whether a backslash stands where it helps to tell where the host begins or ends. */
function hasBackslashAuthority(value: string): boolean {
  const backslash = value.indexOf('\\');
  if (backslash < 0) return false;
  const text = stripped(value);
  let at = text.indexOf(':') + 1;
  for (; text[at] === '/' || text[at] === '\\'; at++) if (text[at] === '\\') return true;
  while (at < text.length && !'/\\?#'.includes(text[at]!)) at++;
  return text[at] === '\\';
}

function encodingOf(path: string, query: string, decodedPath: string): number {
  let bits = 0;
  if (isEncodedTwice(path, decodedPath) || isEncodedTwice(query)) bits |= SPELLING.double_encoding;
  if (hidesTraversal(decodedPath)) bits |= SPELLING.encoded_traversal;
  return bits;
}
