/** Addresses that a host is or spells, and the ranges that a policy names. */

import { type Address, isInNetwork, type Network, parseAddress, parseNetwork } from '../network/address.ts';
import { invalid } from './documents.ts';

/** An address as it is written: one of IPv4 in the spelling of IPv6 is another one, and judged as such. */
export interface HostAddress {
  readonly family: 4 | 6;
  readonly address: Address;
}

export interface Range extends Network {
  readonly text: string;
}

/** Reads an address in the canonical spelling of the URL standard, IPv6 in brackets or without. */
export function readAddress(host: string): HostAddress | undefined {
  const text = host.startsWith('[') ? host.slice(1, -1) : host;
  const address = parseAddress(text);
  return address === undefined ? undefined : { family: text.includes(':') ? 6 : 4, address };
}

/** Reads `10.0.0.0/8`, `fc00::/7`, or a single address. @throws PagegateError policy_invalid */
export function readRange(text: string): Range {
  const network = parseNetwork(text);
  if (network === undefined)
    throw invalid(text, `"${text}" is no address range; write it like 10.0.0.0/8 or fc00::/7.`);
  return { ...network, text };
}

export function contains(range: Range, { family, address }: HostAddress): boolean {
  return range.family === family && isInNetwork(address, range);
}

/** Whether every address of `inner` is one of `outer`. */
export function containsRange(outer: Range, inner: Range): boolean {
  return outer.bits <= inner.bits && contains(outer, { family: inner.family, address: inner.base });
}

/** Whether an IPv6 address carries an IPv4 address by the ISATAP pattern `…:0:5efe:a.b.c.d`. */
export function isIsatap({ family, address }: HostAddress): boolean {
  return family === 6 && (address[8]! & 0xfd) === 0 && address[9] === 0 && address[10] === 0x5e && address[11] === 0xfe;
}
