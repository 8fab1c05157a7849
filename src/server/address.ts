/** Addresses of connections, the networks they are in, and who a request comes from. */
import { type Address, isIpv4Address, type Network, parseAddress } from '../config/network.ts';

export { type Address, isIpv4Address, type Network, parseAddress, parseNetwork } from '../config/network.ts';

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
