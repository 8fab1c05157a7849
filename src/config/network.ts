/** Network addresses as 16 bytes (IPv4 as ::ffff:a.b.c.d) and networks in CIDR notation, as a configuration names them. */
import { isIPv4, isIPv6 } from 'node:net';
import { PagegateError } from '../errors.ts';

export type Address = Uint8Array;

/** A network: addresses whose first `bits` (of 128) are those of `base`. */
export interface Network {
  readonly base: Address;
  readonly bits: number;
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

export function isIpv4Address(address: Address): boolean {
  for (let i = 0; i < 10; i++) if (address[i] !== 0) return false;
  return address[10] === 0xff && address[11] === 0xff;
}

/** From text: IPv4 in four decimal numbers, IPv6 in any spelling without a zone; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) {
    const address = new Uint8Array(16);
    address.set(MAPPED_PREFIX);
    address.set(text.split('.').map(Number), 12);
    return address;
  }
  if (!isIPv6(text) || text.includes('%')) return undefined;
  return parseIpv6(text);
}

function parseIpv6(text: string): Address {
  const address = new Uint8Array(16);
  const dotted = /(?:^|:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)?.[1];
  let rest = text;
  if (dotted !== undefined) {
    const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
    rest = `${text.slice(0, -dotted.length)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  }
  const [head = '', tail] = rest.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const first = groups(head);
  const last = tail === undefined ? [] : groups(tail);
  first.forEach((group, i) => {
    address.set([group >> 8, group & 0xff], i * 2);
  });
  last.forEach((group, i) => {
    address.set([group >> 8, group & 0xff], 16 - (last.length - i) * 2);
  });
  return address;
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or a single address. Throws `config_invalid`. */
export function parseNetwork(text: string): Network {
  const slash = text.indexOf('/');
  const base = parseAddress(slash === -1 ? text : text.slice(0, slash));
  const length = slash === -1 ? undefined : text.slice(slash + 1);
  if (base !== undefined) {
    const isV4 = isIpv4Address(base) && !text.includes(':');
    const most = isV4 ? 32 : 128;
    const bits = length === undefined ? most : /^\d{1,3}$/.test(length) ? Number(length) : -1;
    if (bits >= 0 && bits <= most) return { base, bits: isV4 ? bits + 96 : bits };
  }
  throw new PagegateError('config_invalid', `"${text}" is neither an address nor a network such as 10.0.0.0/8.`, {
    got: text,
  });
}
