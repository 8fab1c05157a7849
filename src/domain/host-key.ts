/** Converts a host in any spelling to the key of its record in the index. */

import { DOT, HYPHEN, SLASH } from '../bytes/ascii.ts';
import { LIMITS } from '../limits.ts';
import { isPublicSuffix, registrableDomain } from './public-suffix.ts';

/** Why a host has no key. */
export type HostProblem =
  | 'empty'
  | 'unparsable'
  | 'ip_address'
  | 'single_label'
  | 'too_long'
  | 'label_too_long'
  | 'empty_label'
  | 'edge_hyphen'
  | 'control_character'
  | 'forbidden_character'
  | 'idn_invalid';

export type KeyResult = { readonly key: string } | { readonly problem: HostProblem };

const { unicode = 'unknown' } = process.versions;

/** The Unicode version that converts internationalized names to keys. An index built with another version may contain other keys. */
export const UNICODE_VERSION: string = unicode;

/** The maximum length of a DNS name in octets, without a trailing dot. */
export const NAME_MAX_LENGTH = LIMITS.domainBytes.value;
const LABEL_MAX_LENGTH = LIMITS.labelBytes.value;

/** For each ASCII code: 1 = letter a-z, 2 = digit or underscore, 3 = hyphen, 4 = dot, 0 = anything else. */
const HOST_CLASS = new Uint8Array(128);
for (let code = 0x61; code <= 0x7a; code++) HOST_CLASS[code] = 1;
for (let code = 0x30; code <= 0x39; code++) HOST_CLASS[code] = 2;
HOST_CLASS[0x5f] = 2;
HOST_CLASS[HYPHEN] = 3;
HOST_CLASS[DOT] = 4;

/**
 * Returns where the host that begins at `start` ends, at a slash or at the end of the text, if it is a canonical host that needs no further
 * parsing: lower-case letters, digits, underscores and inner hyphens; at least two labels, none starting with `xn--`; the last one starts
 * with a letter, so that no parser takes the host for an IP address. Otherwise returns -1.
 */
export function plainHostEnd(text: string, start: number): number {
  const limit = Math.min(text.length, start + NAME_MAX_LENGTH + 1);
  let labelStart = start;
  let labels = 0;
  let before = 4;
  let at = start;
  for (; at < limit; at++) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? HOST_CLASS[code]! : 0;
    if (kind === 0) {
      if (code === SLASH) break;
      return -1;
    }
    if (kind === 4) {
      if (before >= 3 || at - labelStart > LABEL_MAX_LENGTH) return -1;
      labels++;
      labelStart = at + 1;
    } else if (kind === 3 && (before === 4 || isAcePrefix(text, labelStart, at))) return -1;
    before = kind;
  }
  if (labels === 0 || before >= 3 || at - labelStart > LABEL_MAX_LENGTH || at - start > NAME_MAX_LENGTH) return -1;
  return HOST_CLASS[text.charCodeAt(labelStart)] === 1 ? at : -1;
}

/** Whether the hyphen at `at` ends the prefix `xn--` of the label that starts at `labelStart`. */
function isAcePrefix(text: string, labelStart: number, at: number): boolean {
  return at === labelStart + 3 && text.startsWith('xn--', labelStart);
}

/**
 * Returns the key of a host: its form in the URL standard (lower case, punycode), without one trailing dot and without leading `www.`
 * labels. A `www.` stays if the rest is a public suffix or a single label. Idempotent.
 */
export function keyFromHost(host: string): KeyResult {
  if (plainHostEnd(host, 0) === host.length) return { key: withoutWww(host) };
  return keyFromSpelling(host);
}

/** The slow path of {@link keyFromHost} for any spelling. The caller must limit the length of the host. */
function keyFromSpelling(host: string): KeyResult {
  if (host === '') return { problem: 'empty' };
  for (let at = 0; at < host.length; at++) {
    const code = host.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return { problem: 'control_character' };
  }
  const isBracketed = host.startsWith('[') && host.endsWith(']');
  if (!isBracketed && /[ #/:<>?@[\\\]^|]/.test(host)) return { problem: 'forbidden_character' };
  const parsed = URL.parse(`https://${host}/`);
  if (parsed === null) return { problem: problemOfUnparsable(host) };
  if (isBracketed) return { problem: 'ip_address' };
  return keyFromCanonicalHost(parsed.hostname);
}

/** Returns the most likely problem of a host that the URL standard's parser rejects. */
export function problemOfUnparsable(text: string): HostProblem {
  return /[^\0-\x7f]|xn--/i.test(text) ? 'idn_invalid' : 'unparsable';
}

/** Returns the key of a host that the URL standard's parser has serialized, or the reason why it has no key. */
export function keyFromCanonicalHost(hostname: string): KeyResult {
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  if (plainHostEnd(name, 0) === name.length) return { key: withoutWww(name) };
  if (name === '') return { problem: hostname === '' ? 'empty' : 'empty_label' };
  if (name.startsWith('[') || /^[0-9]+(\.[0-9]+){3}$/.test(name)) return { problem: 'ip_address' };
  const labels = name.split('.');
  if (labels.includes('')) return { problem: 'empty_label' };
  if (labels.some((label) => label.length > LABEL_MAX_LENGTH)) return { problem: 'label_too_long' };
  if (name.length > NAME_MAX_LENGTH) return { problem: 'too_long' };
  if (labels.length === 1) return { problem: 'single_label' };
  if (/[^a-z0-9._-]/.test(name)) return { problem: 'forbidden_character' };
  if (hasEdgeHyphen(name, labels)) return { problem: 'edge_hyphen' };
  return { key: withoutWww(name) };
}

/** Whether a label of the registrable domain begins or ends with a hyphen. No registry allows that; subdomains with such labels exist. */
function hasEdgeHyphen(name: string, labels: readonly string[]): boolean {
  if (!labels.some((label) => label.startsWith('-') || label.endsWith('-'))) return false;
  const registrable = registrableDomain(name) ?? name;
  return registrable.split('.').some((label) => label.startsWith('-') || label.endsWith('-'));
}

const WWW = 'www.';

/** Removes leading `www.` labels from a canonical name. `www.com` and `www.co.uk` stay as they are. */
export function withoutWww(name: string): string {
  let key = name;
  while (key.length > WWW.length && key.charCodeAt(WWW.length - 1) === DOT && key.startsWith(WWW)) {
    const rest = key.slice(WWW.length);
    if (!rest.includes('.') || isPublicSuffix(rest, { private: false })) break;
    key = rest;
  }
  return key;
}
