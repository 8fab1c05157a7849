/** Determines the client address of a request: the peer of the connection, or the client that trusted proxies report. */

import { LIMITS } from '../limits.ts';
import { type Address, isInAny, isIpv4Address, type Network, parseAddress } from './address.ts';

/** A longer X-Forwarded-For header is ignored: a chain of proxies is a handful of addresses. */
const FORWARDED_MAX_LENGTH = LIMITS.forwardedCharacters.value;

/**
 * Returns the client address of a request: the peer itself or, if the peer is a trusted proxy, the rightmost address in X-Forwarded-For
 * that is not a trusted proxy. If an item up to there is not an address, the header is ignored: a client must not be able to choose its
 * own address.
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

/** Returns the key under which requests of an address are counted: the whole IPv4 address, or the /64 of IPv6, which one host controls. */
export function clientKey(address: Address): string {
  return Buffer.from(address.buffer, address.byteOffset, isIpv4Address(address) ? 16 : 8).toString('latin1');
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text);
  if (bracketed !== null) return bracketed[1]!;
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}
