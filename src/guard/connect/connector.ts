/** Connects only to addresses that the guard permits: checked before the first packet, and again on the socket there is. */
import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { Guard } from '../guard.ts';

export interface ConnectOptions extends Omit<buildConnector.BuildOptions, 'socketPath' | 'host' | 'path' | 'lookup'> {
  /** Resolves names in the place of the system; what it finds is checked all the same. */
  readonly lookup?: LookupFunction;
}

/** A name led to an address that is not permitted. */
class InsideError extends Error {
  readonly address: string;

  constructor(address: string) {
    super(address);
    this.address = address;
  }
}

/** A lookup that fails where one of the addresses found is not permitted: a name that leads inside and outside is not to be trusted. */
export function checkedLookup(guard: Guard, lookup: LookupFunction = systemLookup as LookupFunction): LookupFunction {
  return (name, wanted, found) => {
    lookup(name, { ...wanted, all: true }, (error, result, family) => {
      if (error) return found(error, '', 0);
      const all = Array.isArray(result) ? result : [{ address: result, family: family ?? isIP(result) }];
      const inside = all.find(({ address }) => !guard.addresses.permits(name, address));
      if (inside !== undefined) return found(new InsideError(inside.address), '', 0);
      return wanted.all ? found(null, all) : found(null, all[0]?.address ?? '', all[0]?.family);
    });
  };
}

/** undici's connector, within the guard's limits. */
export function guardedConnector(guard: Guard, { lookup, ...options }: ConnectOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: checkedLookup(guard, lookup) } as buildConnector.BuildOptions);
  return (request, callback) => {
    const host = request.hostname.replace(/^\[|\]$/g, '');
    const refuse = (address: string): void => {
      const url = `${request.protocol}//${request.host ?? request.hostname}/`;
      callback(guard.refuse(url, 'CONNECT', 'inside_address', `${host} is ${address}`), null);
    };
    // A host that is an address is never looked up.
    if (isIP(host) !== 0 && !guard.addresses.permits(host, host)) return refuse(host);
    connect(request, (...[error, socket]) => {
      if (error instanceof InsideError) return refuse(error.address);
      if (error !== null) return callback(error, null);
      const { remoteAddress = 'unknown' } = socket as Socket;
      if (guard.addresses.permits(host, remoteAddress)) return callback(null, socket);
      socket.destroy();
      refuse(remoteAddress);
    });
  };
}
