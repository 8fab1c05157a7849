/** Connects only to addresses that the guard permits: checked before the first packet, and again on the socket there is. */
import { lookup as systemLookup } from 'node:dns';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { withoutBrackets } from '../network/address.ts';
import type { Guard } from './guard.ts';

export interface ConnectOptions extends Omit<buildConnector.BuildOptions, 'socketPath' | 'host' | 'path' | 'lookup'> {
  /** Resolves names in the place of the system; what it finds is checked all the same. */
  readonly lookup?: LookupFunction | undefined;
}

/** A name led to an address that is not permitted: what undici's lookup can say, which is made before there is a URL. */
class InsideError extends Error {
  readonly address: string;

  constructor(address: string) {
    super(address);
    this.address = address;
  }
}

/**
 * A lookup that fails, with the error of `refuse`, where one of the addresses found is not permitted: a name that leads inside and outside
 * is not to be trusted.
 */
function checkedLookup(
  guard: Guard,
  lookup: LookupFunction = systemLookup as LookupFunction,
  refuse: (address: string) => Error,
): LookupFunction {
  return (name, wanted, found) => {
    lookup(name, { ...wanted, all: true }, (error, result, family) => {
      if (error) return found(error, '', 0);
      const all = Array.isArray(result) ? result : [{ address: result, family: family ?? isIP(result) }];
      const inside = all.find(({ address }) => !guard.addresses.permits(name, address));
      if (inside !== undefined) return found(refuse(inside.address), '', 0);
      return wanted.all ? found(null, all) : found(null, all[0]?.address ?? '', all[0]?.family);
    });
  };
}

/** Never throws, because nobody could catch it here: a refusal that cannot be reported is the failure of its report. */
function refusalOf(guard: Guard, url: string, host: string, address: string): Error {
  try {
    return guard.refuse(url, 'CONNECT', 'inside_address', `${host} is ${address}`);
  } catch (error) {
    return error as Error;
  }
}

type Callback = (error: Error | null, socket: Socket | null) => void;

/** undici's connector, within the guard's limits. */
export function guardedConnector(guard: Guard, { lookup, ...options }: ConnectOptions): buildConnector.connector {
  const checked = checkedLookup(guard, lookup, (address) => new InsideError(address));
  const open = buildConnector({ ...options, lookup: checked } as buildConnector.BuildOptions);
  return (request, callback) => {
    const url = `${request.protocol}//${request.host ?? request.hostname}/`;
    const host = withoutBrackets(request.hostname);
    const done = callback as Callback;
    const refuse = (address: string): void => done(refusalOf(guard, url, host, address), null);
    if (isInside(guard, host)) return refuse(host);
    open(request, ((error, socket) => {
      const address = socket?.remoteAddress ?? 'unknown';
      if (error instanceof InsideError) return refuse(error.address);
      if (error !== null || guard.addresses.permits(host, address)) return done(error, socket);
      socket?.destroy();
      refuse(address);
    }) as Callback as buildConnector.Callback);
  };
}

/** Whether a host is an address that is not permitted: it is never looked up. */
const isInside = (guard: Guard, host: string): boolean => isIP(host) !== 0 && !guard.addresses.permits(host, host);

/**
 * A TCP connection to the host and port of a URL.
 *
 * @throws RefusedError where its address is not permitted
 */
export function guardedConnect(guard: Guard, url: URL, lookup?: LookupFunction): Promise<Socket> {
  const host = withoutBrackets(url.hostname);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return new Promise((resolve, reject) => {
    const socket = openChecked(guard, url, lookup, (checked) => connect({ host, port, lookup: checked }));
    if (socket instanceof Error) return reject(socket);
    // One that was refused is connected, too, and destroyed already.
    socket.once('error', reject).once('connect', () => !socket.destroyed && resolve(socket));
  });
}

/**
 * A socket that `open` makes for a URL's host, with the lookup that it is given. It is destroyed with the refusal where its address is not
 * permitted, before anything is sent; for a host that is such an address, the refusal is all there is.
 */
export function openChecked(
  guard: Guard,
  url: URL,
  lookup: LookupFunction | undefined,
  open: (lookup: LookupFunction) => Socket,
): Socket | Error {
  const host = withoutBrackets(url.hostname);
  const refuse = (address: string): Error => refusalOf(guard, url.href, host, address);
  if (isInside(guard, host)) return refuse(host);
  const socket = open(checkedLookup(guard, lookup, refuse));
  // Ahead of whoever writes to the socket, or begins TLS on it.
  socket.prependOnceListener('connect', () => {
    const address = socket.remoteAddress ?? 'unknown';
    if (!guard.addresses.permits(host, address)) socket.destroy(refuse(address));
  });
  return socket;
}
