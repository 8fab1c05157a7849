/** Network addresses as 16 bytes (IPv4 as ::ffff:a.b.c.d), networks in CIDR notation, and who a request comes from. */
import { isIPv4, isIPv6 } from 'node:net';
import { PagegateError } from '../errors.ts';

export type Address = Uint8Array;

/** A network: addresses whose first `bits` (of 128) are those of `base`. */
export interface Network {
  readonly base: Address;
  readonly bits: number;
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/** X-Forwarded-For beyond this is not read: a chain of proxies is a handful of addresses. */
const FORWARDED_MAX_LENGTH = 2_048;

/** From the 4 or 16 bytes that the transport gives; written into `address`, which is returned. */
export function addressFromBytes(bytes: ArrayBuffer, address: Address = new Uint8Array(16)): Address {
  const raw = new Uint8Array(bytes);
  if (raw.length === 16) {
    address.set(raw);
    return address;
  }
  for (let i = 0; i < 10; i++) address[i] = 0;
  address[10] = 0xff;
  address[11] = 0xff;
  for (let i = 0; i < 4; i++) address[12 + i] = raw[i] ?? 0;
  return address;
}

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

export function isInNetwork(address: Address, { base, bits }: Network): boolean {
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== base[i]) return false;
  const rest = bits & 7;
  return rest === 0 || (address[whole]! ^ base[whole]!) >> (8 - rest) === 0;
}

export function isInAny(address: Address, networks: readonly Network[]): boolean {
  return networks.some((network) => isInNetwork(address, network));
}

/**
 * The client behind a request: the peer itself, or, where the peer is a trusted proxy, the rightmost address of X-Forwarded-For that
 * is no trusted proxy. A header that cannot be read up to there is ignored: what a client wrote into it must not choose its address.
 */
export function clientAddress(peer: Address, forwarded: string, proxies: readonly Network[]): Address {
  if (proxies.length === 0 || forwarded === '' || !isInAny(peer, proxies)) return peer;
  if (forwarded.length > FORWARDED_MAX_LENGTH) return peer;
  for (const item of forwarded.split(',').reverse()) {
    const address = parseAddress(withoutPort(item.trim()));
    if (address === undefined) return peer;
    if (!isInAny(address, proxies)) return address;
  }
  return peer;
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text);
  if (bracketed !== null) return bracketed[1]!;
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}

/** Whether a listening address can only be reached from this host. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  const address = parseAddress(host.replace(/^\[|\]$/g, ''));
  if (address === undefined) return false;
  return isIpv4Address(address)
    ? address[12] === 127
    : address[15] === 1 && address.subarray(0, 15).every((byte) => byte === 0);
}
