/** IP addresses and ranges of them, as numbers. */
import { PagegateError } from '../../errors.ts';

/** An address as four 32-bit words; IPv4 has only the last one. */
export interface Address {
  readonly family: 4 | 6;
  readonly words: readonly [number, number, number, number];
}

export interface Range {
  readonly family: 4 | 6;
  readonly words: readonly [number, number, number, number];
  readonly masks: readonly [number, number, number, number];
  readonly text: string;
}

/** Reads an address in the canonical spelling of the URL standard, IPv6 in brackets or without. */
export function parseAddress(host: string): Address | undefined {
  if (/^[0-9]+(\.[0-9]+){3}$/.test(host)) {
    const parts = host.split('.').map(Number);
    if (parts.some((part) => part > 255)) return undefined;
    return {
      family: 4,
      words: [0, 0, 0, ((parts[0]! << 24) | (parts[1]! << 16) | (parts[2]! << 8) | parts[3]!) >>> 0],
    };
  }
  const text = host.startsWith('[') ? host.slice(1, -1) : host;
  return text.includes(':') ? parseIpv6(text) : undefined;
}

function parseIpv6(text: string): Address | undefined {
  const canonical = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  if (canonical === undefined) return undefined;
  const gap = canonical.indexOf('::');
  const head = groups(gap < 0 ? canonical : canonical.slice(0, gap));
  const tail = gap < 0 ? [] : groups(canonical.slice(gap + 2));
  const all = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  const word = (at: number): number => ((all[at]! << 16) | all[at + 1]!) >>> 0;
  return { family: 6, words: [word(0), word(2), word(4), word(6)] };
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

/** Reads `10.0.0.0/8`, `fc00::/7`, or a single address. Throws policy_invalid. */
export function parseRange(text: string): Range {
  const [base = '', bits] = text.split('/');
  const address = parseAddress(base);
  const width = address?.family === 4 ? 32 : 128;
  const prefix = bits === undefined ? width : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : -1;
  if (address === undefined || prefix < 0 || prefix > width) {
    throw new PagegateError('policy_invalid', `"${text}" is no address range; write it like 10.0.0.0/8 or fc00::/7.`, {
      got: text,
    });
  }
  const offset = 128 - width;
  const mask = (at: number): number => wordMask(prefix + offset - at * 32);
  const masks = [mask(0), mask(1), mask(2), mask(3)] as const;
  const words = address.words.map((word, at) => (word & masks[at]!) >>> 0) as unknown as Range['words'];
  return { family: address.family, words, masks, text };
}

function wordMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffffffff : (0xffffffff << (32 - bits)) >>> 0;
}

export function contains(range: Range, address: Address): boolean {
  if (range.family !== address.family) return false;
  for (let at = 0; at < 4; at++) {
    if ((address.words[at]! & range.masks[at]!) >>> 0 !== range.words[at]!) return false;
  }
  return true;
}

/** Whether an IPv6 address carries an IPv4 address by the ISATAP pattern `…:0:5efe:a.b.c.d`. */
export function isIsatap(address: Address): boolean {
  return address.family === 6 && (address.words[2]! & 0xfdffffff) >>> 0 === 0x00005efe;
}
