/** Who a request comes from: the peer of the connection, or the client that trusted proxies name. */

import { LIMITS } from '../limits.ts';
import { type Address, isInAny, isIpv4Address, type Network, parseAddress } from './address.ts';

/** X-Forwarded-For beyond this is not read: a chain of proxies is a handful of addresses. */
const FORWARDED_MAX_LENGTH = LIMITS.forwardedCharacters.value;

/**
 * The client behind a request: the peer itself, or, where the peer is a trusted proxy, the rightmost address of X-Forwarded-For that
 * is not a trusted proxy. A header that cannot be read up to there is ignored: what a client wrote into it must not choose its address.
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

/** What an address is counted by: IPv4 by itself, IPv6 by its /64, which is what one host has. */
export function clientKey(address: Address): string {
  return Buffer.from(address.buffer, address.byteOffset, isIpv4Address(address) ? 16 : 8).toString('latin1');
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text);
  if (bracketed !== null) return bracketed[1]!;
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}
