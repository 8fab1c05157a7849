/** Parses, compares and formats IP addresses and networks in CIDR notation. */
import { isIPv4, isIPv6 } from 'node:net';

/** An address as 16 bytes. IPv4 addresses are mapped to IPv6 (`::ffff:a.b.c.d`). */
export type Address = Uint8Array;

/** A network: all addresses that share the first `bits` (of 128) with `base`. */
export interface Network {
  readonly base: Address;
  readonly bits: number;
  /** The family of the notation: `0.0.0.0/0` and `::ffff:0:0/96` contain the same addresses but differ in family. */
  readonly family: 4 | 6;
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Whether an address is a mapped IPv4 address. */
export function isIpv4Address(address: Address): boolean {
  for (let i = 0; i < 10; i++) if (address[i] !== 0) return false;
  return address[10] === 0xff && address[11] === 0xff;
}

/** Parses an address: IPv4 as four decimal numbers, IPv6 in any spelling without a zone; undefined for anything else. */
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

/** Converts the 4 or 16 bytes of a socket's address. Writes into `address` and returns it. */
export function addressFromBytes(bytes: ArrayBuffer, address: Address = new Uint8Array(16)): Address {
  const raw = new Uint8Array(bytes);
  // By loops: for so few bytes, a call of the platform costs more.
  if (raw.length === 16) {
    for (let i = 0; i < 16; i++) address[i] = raw[i]!;
    return address;
  }
  for (let i = 0; i < 12; i++) address[i] = MAPPED_PREFIX[i]!;
  for (let i = 0; i < 4; i++) address[12 + i] = raw[i] ?? 0;
  return address;
}

/** Formats an address: IPv4 as four decimal numbers, IPv6 as eight groups without `::`. */
export function formatAddress(address: Address): string {
  if (isIpv4Address(address)) return address.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((address[2 * i]! << 8) | address[2 * i + 1]!).toString(16));
  return groups.join(':');
}

/** Parses `10.0.0.0/8`, `2001:db8::/32` or a single address; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/');
  const base = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (base === undefined) return undefined;
  const family = text.includes(':') ? 6 : 4;
  const width = family === 4 ? 32 : 128;
  const length = slash === -1 ? String(width) : text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(length) || Number(length) > width) return undefined;
  return { base, bits: Number(length) + 128 - width, family };
}

/** Parses networks that are known to be valid, such as those of a checked configuration. */
export function parseNetworks(texts: readonly string[]): Network[] {
  return texts.map((text) => parseNetwork(text)!);
}

export function isInNetwork(address: Address, { base, bits }: Network): boolean {
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== base[i]) return false;
  const rest = bits & 7;
  return rest === 0 || (address[whole]! ^ base[whole]!) >> (8 - rest) === 0;
}

export function isInAny(address: Address, networks: readonly Network[]): boolean {
  for (const network of networks) if (isInNetwork(address, network)) return true;
  return false;
}

/** Whether an IPv6 address contains an IPv4 address in ISATAP form: `…:0:5efe:a.b.c.d` or `…:200:5efe:a.b.c.d`. */
export function isIsatap(address: Address): boolean {
  return (address[8]! & 0xfd) === 0 && address[9] === 0 && address[10] === 0x5e && address[11] === 0xfe;
}

/** Removes the brackets around an IPv6 address in a URL's host. Returns other hosts unchanged. */
export function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

/** Returns a host as it appears in a URL: adds brackets around an IPv6 address unless it already has them. */
export function withBrackets(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** Whether a listening address is reachable only from this host. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  const address = parseAddress(withoutBrackets(host));
  if (address === undefined) return false;
  return isIpv4Address(address)
    ? address[12] === 127
    : address[15] === 1 && address.subarray(0, 15).every((byte) => byte === 0);
}
