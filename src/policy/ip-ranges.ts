/** Addresses that a host is or spells, and the ranges that a policy names. */

import {
  type Address,
  isInNetwork,
  type Network,
  parseAddress,
  parseNetwork,
  withoutBrackets,
} from '../network/address.ts';
import { invalidPolicy } from './documents.ts';

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
  const text = withoutBrackets(host);
  const address = parseAddress(text);
  return address === undefined ? undefined : { family: text.includes(':') ? 6 : 4, address };
}

/** Reads `10.0.0.0/8`, `fc00::/7`, or a single address. @throws PagegateError policy_invalid */
export function readRange(text: string): Range {
  const network = parseNetwork(text);
  if (network === undefined)
    throw invalidPolicy(text, `"${text}" is no address range; write it like 10.0.0.0/8 or fc00::/7.`);
  return { ...network, text };
}

export function isInRange(range: Range, { family, address }: HostAddress): boolean {
  return range.family === family && isInNetwork(address, range);
}

/** Whether every address of `inner` is one of `outer`. */
export function isRangeInRange(outer: Range, inner: Range): boolean {
  return outer.bits <= inner.bits && isInRange(outer, { family: inner.family, address: inner.base });
}
