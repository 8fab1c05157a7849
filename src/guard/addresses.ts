/**
 * Which addresses a guarded connection may lead to. A lookup judges a name; where the name leads is only known at the connection, so a
 * name that resolves into the own network (rebinding) is stopped here.
 */
import { BlockList, isIP } from 'node:net';

/**
 * Networks that are not the public Internet: the IANA registries of special-purpose addresses (RFC 6890 and its updates) and the two
 * metadata services of clouds that stand on other addresses.
 */
const SPECIAL: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  // Teredo, benchmarking, ORCHID and others; documentation; 6to4; documentation.
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const special = new BlockList();
for (const [base, bits] of SPECIAL) special.addSubnet(base, bits, base.includes(':') ? 'ipv6' : 'ipv4');

/** The one block that global unicast addresses are given out of; mapped, translated (NAT64), local and multicast ones lie outside. */
const unicast = new BlockList();
unicast.addSubnet('2000::', 3, 'ipv6');

/** The interface identifier of ISATAP, which carries an IPv4 address inside: `…:0:5efe:a.b.c.d` or `…:200:5efe:a.b.c.d`. */
const ISATAP = /:(?:0|200)?:5efe:(?:[0-9a-f]{0,4}:?){0,2}$/;

/** Whether an address, as `net` writes it, is one of the public Internet. Anything that is no address is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !special.check(address, 'ipv4');
  if (family !== 6 || address.includes('%')) return false;
  return unicast.check(address, 'ipv6') && !special.check(address, 'ipv6') && !ISATAP.test(canonical(address));
}

/** One spelling for each address; empty for what is none. */
function canonical(address: string): string {
  const family = isIP(address);
  if (family === 4) return address;
  return family === 6 && !address.includes('%') ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : '';
}

/** Host → the addresses, public or not, that this very host may lead to. */
export type AddressExceptions = Readonly<Record<string, string | readonly string[]>>;

/** Says where a host may lead. */
export class AddressCheck {
  readonly #exceptions = new Map<string, ReadonlySet<string>>();

  /** @throws TypeError for a host that is not written as URLs have it, or for what is not an address. */
  constructor(exceptions: AddressExceptions = {}) {
    for (const [host, given] of Object.entries(exceptions)) {
      const addresses = [given].flat().map(canonical);
      if (!isHost(host) || addresses.length === 0 || addresses.includes('')) {
        throw new TypeError(`exceptions: ${host}: ${given}: give a host and the exact addresses it may lead to`);
      }
      this.#exceptions.set(host, new Set(addresses));
    }
  }

  /** Whether a connection for `host` may go to `address`. */
  permits(host: string, address: string): boolean {
    return isPublicAddress(address) || this.#exceptions.get(host)?.has(canonical(address)) === true;
  }
}

function isHost(host: string): boolean {
  try {
    return new URL(`http://${host}/`).hostname === host;
  } catch {
    return false;
  }
}
