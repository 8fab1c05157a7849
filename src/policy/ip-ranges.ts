/** IP addresses of hosts, and the address ranges of a policy. */

import {
  type Address,
  isInNetwork,
  type Network,
  parseAddress,
  parseNetwork,
  withoutBrackets,
} from '../network/address.ts';
import { invalidPolicy } from './documents.ts';

/** An address with the family in which it is written. An IPv4 address in IPv6 notation is an IPv6 address here, and judged as one. */
export interface HostAddress {
  readonly family: 4 | 6;
  readonly address: Address;
}

export interface Range extends Network {
  readonly text: string;
}

/** Parses an address in the canonical spelling of the URL standard, IPv6 with or without brackets; undefined if it is not one. */
export function readAddress(host: string): HostAddress | undefined {
  const text = withoutBrackets(host);
  const address = parseAddress(text);
  return address === undefined ? undefined : { family: text.includes(':') ? 6 : 4, address };
}

/** Parses `10.0.0.0/8`, `fc00::/7`, or a single address. @throws PagegateError policy_invalid */
export function readRange(text: string): Range {
  const network = parseNetwork(text);
  if (network === undefined)
    throw invalidPolicy(text, `"${text}" is no address range; write it like 10.0.0.0/8 or fc00::/7.`);
  return { ...network, text };
}

export function isInRange(range: Range, { family, address }: HostAddress): boolean {
  return range.family === family && isInNetwork(address, range);
}

/** Whether every address of `inner` is in `outer`. */
export function isRangeInRange(outer: Range, inner: Range): boolean {
  return outer.bits <= inner.bits && isInRange(outer, { family: inner.family, address: inner.base });
}
