/**
 * Which addresses a guarded connection may lead to. A lookup judges a name; where the name leads is only known at the connection, so a
 * name that resolves into the own network (rebinding) is stopped here.
 */
import {
  isInAny,
  isInNetwork,
  isIpv4Address,
  isIsatap,
  type Network,
  parseAddress,
  parseNetwork,
  withBrackets,
  withoutBrackets,
} from '../network/address.ts';

/**
 * Networks that are not the public Internet: the IANA registries of special-purpose addresses (RFC 6890 and its updates), and the one
 * metadata service of a cloud that stands on another address.
 */
const SPECIAL: readonly Network[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/3'],
  // Teredo, benchmarking, ORCHID and others; documentation; 6to4; documentation.
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
].map(networkOf);

/** The one block that global unicast addresses are given out of; mapped, translated (NAT64), local and multicast ones lie outside. */
const UNICAST = networkOf('2000::/3');

function networkOf(text: string): Network {
  return parseNetwork(text)!;
}

/** Whether an address, as `net` writes it, is one of the public Internet. Anything that is no address is not. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined || isInAny(address, SPECIAL)) return false;
  if (isIpv4Address(address)) return !isMapped(text);
  return isInNetwork(address, UNICAST) && !isIsatap(address);
}

/** Whether an IPv4 address is written as an IPv6 one, `::ffff:a.b.c.d`: nobody's resolver does that but to hide it. */
function isMapped(text: string): boolean {
  return text.includes(':');
}

/** Host → the addresses, public or not, that this very host may lead to. */
export type AddressExceptions = Readonly<Record<string, string | readonly string[]>>;

/** Says where a host may lead. */
export class AddressCheck {
  readonly #exceptions = new Map<string, ReadonlySet<string>>();

  /** @throws TypeError for a host that is not written as URLs have it, or for what is not an address. */
  constructor(exceptions: AddressExceptions = {}) {
    for (const [host, given] of Object.entries(exceptions)) {
      const addresses = [given].flat().map(spellingOf);
      const name = nameOf(host);
      if (name === undefined || addresses.length === 0 || addresses.includes(undefined)) {
        throw new TypeError(`exceptions: ${host}: ${given}: give a host and the exact addresses it may lead to`);
      }
      this.#exceptions.set(name, new Set(addresses as string[]));
    }
  }

  /** Whether a connection for `host` may go to `address`. */
  permits(host: string, address: string): boolean {
    if (isPublicAddress(address)) return true;
    const spelling = spellingOf(address);
    return spelling !== undefined && this.#exceptions.get(host)?.has(spelling) === true;
  }
}

/** One spelling for each address; a mapped one is not the same as the plain one. */
function spellingOf(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? undefined : `${isMapped(text)} ${address.join('.')}`;
}

/** A host as connections name it, without brackets; undefined for one that is not written as URLs have it. */
function nameOf(host: string): string | undefined {
  const inUrl = withBrackets(host);
  try {
    return new URL(`http://${inUrl}/`).hostname === inUrl ? withoutBrackets(inUrl) : undefined;
  } catch {
    return undefined;
  }
}
