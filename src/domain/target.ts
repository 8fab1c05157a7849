/** Parses the value of `domain` or `url` in a request, a bare domain or a full URL, into a key and a URL to judge. */

import { LIMITS } from '../limits.ts';
import { type CanonicalUrl, parsePlainUrl, parseUnusualUrl, problemOfUrl, webHostStart } from './canonical-url.ts';
import { type HostProblem, keyFromCanonicalHost, withoutWww } from './host-key.ts';

/** The maximum length of a value in bytes of UTF-8. */
export const VALUE_MAX_BYTES = LIMITS.valueBytes.value;

/** Whether a value is longer than {@link VALUE_MAX_BYTES}. A UTF-16 code unit takes at most three bytes. */
export const isOverlong = (value: string): boolean =>
  value.length > VALUE_MAX_BYTES / 3 && Buffer.byteLength(value) > VALUE_MAX_BYTES;

export type TargetProblem =
  | HostProblem
  /** Longer than {@link VALUE_MAX_BYTES}. */
  | 'value_too_long'
  /** An `@` before the first slash of a value without a scheme. */
  | 'userinfo';

/** Returns the error code of a problem: `input_too_long` if the value or its domain exceeds the maximum length. */
export const errorCodeOf = (problem: TargetProblem): 'bad_input' | 'input_too_long' =>
  problem === 'value_too_long' || problem === 'too_long' ? 'input_too_long' : 'bad_input';

/** For some problems, a sentence that says what is wrong or how to correct it. */
const REMEDIES: { readonly [problem in TargetProblem]?: string } = {
  empty: 'It is empty.',
  ip_address: 'It is an address, which no record describes; with a scheme (http://192.0.2.1/) it is judged as a URL.',
  single_label: 'It is a single label, which no record describes; with a scheme (http://host/) it is judged as a URL.',
  label_too_long: 'A label of its host has more than 63 octets.',
  empty_label: 'Its host has two dots in a row, or begins with one.',
  idn_invalid: 'Its international host name is not valid.',
  userinfo: 'It has an @ before the first slash; where that is meant, send it with its scheme.',
};

/** Returns the sentence that explains a problem to the client. */
export const remedyFor = (problem: TargetProblem): string =>
  REMEDIES[problem] ?? 'Expected a domain (example.com) or a URL with a host (https://example.com/path).';

export interface Target {
  /** The key to look up; for an IP address or a single label, the canonical host. */
  readonly key: string;
  /** Whether a record can exist; false for IP addresses and single labels. */
  readonly classifiable: boolean;
  readonly url: CanonicalUrl;
  /** Whether the value had no scheme and was read as `https://<value>`. */
  readonly bare: boolean;
}

/**
 * Removes the whitespace (space, tab, CR, LF, FF) that clients send around a bare domain. This must happen before every other check of a
 * value, including its length. Whitespace inside the value and other control characters stay.
 */
export function withoutOuterBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return end - start === value.length ? value : value.slice(start, end);
}

const isBlank = (code: number): boolean =>
  code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0c || code === 0x0d;

/** Parses a value: `scheme://…` is a URL, anything else is parsed as `https://<value>`. Ignores whitespace around it. */
export function parseTarget(sent: string): Target | { readonly problem: TargetProblem } {
  const value = withoutOuterBlanks(sent);
  if (isOverlong(value)) return { problem: 'value_too_long' };
  const hostStart = webHostStart(value);
  const plain = parsePlainUrl(value, hostStart);
  if (plain === undefined) return parseUnusualTarget(value);
  return { key: withoutWww(plain.host), classifiable: true, url: plain, bare: hostStart === 0 };
}

/** Parses a value that is not already canonical. */
function parseUnusualTarget(value: string): Target | { readonly problem: TargetProblem } {
  const bare = !hasScheme(value);
  if (bare) {
    const at = value.indexOf('@');
    if (at >= 0 && !value.slice(0, at).includes('/')) return { problem: 'userinfo' };
  }
  const url = parseUnusualUrl(bare ? `https://${value}` : value);
  if (url === undefined || url.host === '')
    return { problem: value.trim() === '' ? 'empty' : problemOfUrl(bare ? `https://${value}` : value) };
  const key = url.hostKind === 'domain' ? keyFromCanonicalHost(url.host) : { problem: 'ip_address' as const };
  if ('key' in key) return { key: key.key, classifiable: true, url, bare };
  // Clients connect to such a host, although it is not allowed in a drop.
  if (key.problem === 'edge_hyphen' || key.problem === 'forbidden_character')
    return { key: withoutWww(url.host), classifiable: true, url, bare };
  if (key.problem !== 'ip_address' && key.problem !== 'single_label') return key;
  if (bare && !/^[^?#]*[/\\]/.test(value)) return key;
  return { key: url.host, classifiable: false, url, bare };
}

/** Whether a value has a scheme. Ignores control characters before it, and tabs and line ends inside, because the URL parser drops them too. */
function hasScheme(value: string): boolean {
  if (webHostStart(value) > 0) return true;
  if (!value.includes(':')) return false;
  let scheme = '';
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code === 0x09 || code === 0x0a || code === 0x0d || (scheme === '' && code <= 0x20)) continue;
    if (code === 0x3a) return isSchemeEnd(scheme, value, at + 1);
    if (!isSchemeCode(code, scheme.length) || scheme.length > 64) return false;
    scheme += value[at];
  }
  return false;
}

function isSchemeEnd(scheme: string, value: string, at: number): boolean {
  return (
    scheme !== '' &&
    value
      .slice(at, at + 64)
      .replace(/[\t\n\r]/g, '')
      .startsWith('//')
  );
}

function isSchemeCode(code: number, position: number): boolean {
  const lower = code | 0x20;
  if (lower >= 0x61 && lower <= 0x7a) return true;
  return position > 0 && ((code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e);
}
