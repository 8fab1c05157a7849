/**
 * Decides to which addresses a guarded connection may go. A lookup judges a name, but its address is only known when the connection is made.
 * So a name that resolves to an address of the internal network (DNS rebinding) is refused here.
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
 * Networks that are not the public Internet: the IANA registries of special-purpose addresses (RFC 6890 and its updates), and the one cloud
 * metadata service with an address outside them.
 */
const SPECIAL: readonly Network[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/3'],
  // Teredo, benchmarking, ORCHID and others; documentation; 6to4; documentation.
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
].map(networkOf);

/** The block that global unicast addresses are allocated from. Mapped, translated (NAT64), local and multicast addresses lie outside. */
const UNICAST = networkOf('2000::/3');

function networkOf(text: string): Network {
  return parseNetwork(text)!;
}

/** Whether an address, as `net` writes it, belongs to the public Internet. False for text that is not an address. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined || isInAny(address, SPECIAL)) return false;
  if (isIpv4Address(address)) return !isMapped(text);
  return isInNetwork(address, UNICAST) && !isIsatap(address);
}

/** Whether an IPv4 address is written as an IPv6 one, `::ffff:a.b.c.d`. Resolvers do not return this form except to hide the address. */
function isMapped(text: string): boolean {
  return text.includes(':');
}

/** For each host, the addresses that exactly this host may resolve to, public or not. */
export type AddressExceptions = Readonly<Record<string, string | readonly string[]>>;

/** Decides whether a connection for a host may go to an address. */
export class AddressCheck {
  readonly #exceptions = new Map<string, ReadonlySet<string>>();

  /** @throws TypeError for a host that is not in the canonical form of URLs, or for text that is not an address. */
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

/** Returns a canonical spelling of an address. An IPv4-mapped address differs from the plain IPv4 address. Undefined if it is not an address. */
function spellingOf(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? undefined : `${isMapped(text)} ${address.join('.')}`;
}

/** Returns a host without brackets, as connections use it; undefined if it is not in the canonical form of URLs. */
function nameOf(host: string): string | undefined {
  const inUrl = withBrackets(host);
  try {
    return new URL(`http://${inUrl}/`).hostname === inUrl ? withoutBrackets(inUrl) : undefined;
  } catch {
    return undefined;
  }
}
