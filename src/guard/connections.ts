/** Connects only to addresses that the guard permits. They are checked before the first packet is sent, and again on the connected socket. */
import { lookup as systemLookup } from 'node:dns';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { withoutBrackets } from '../network/address.ts';
import type { Guard } from './guard.ts';

export interface ConnectOptions extends Omit<buildConnector.BuildOptions, 'socketPath' | 'host' | 'path' | 'lookup'> {
  /** Resolves names instead of the system's resolver. Its results are checked, too. */
  readonly lookup?: LookupFunction | undefined;
}

/** A name resolved to an address that is not permitted. undici's lookup, which is created before a URL is known, fails with this error. */
class InsideError extends Error {
  readonly address: string;

  constructor(address: string) {
    super(address);
    this.address = address;
  }
}

/**
 * Wraps a DNS lookup. It fails with the error of `refuse` if any of the found addresses is not permitted: a name that resolves to internal and
 * public addresses cannot be trusted.
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

/** Returns the refusal. If reporting it throws, returns that error instead, because no caller could catch it here. */
function refusalOf(guard: Guard, url: string, host: string, address: string): Error {
  try {
    return guard.refuse(url, 'CONNECT', 'inside_address', `${host} is ${address}`);
  } catch (error) {
    return error as Error;
  }
}

type Callback = (error: Error | null, socket: Socket | null) => void;

/** Creates a connector for undici that connects only to permitted addresses. */
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

/** Whether a host is itself an address that is not permitted. Addresses are never resolved, so the lookup would not catch it. */
const isInside = (guard: Guard, host: string): boolean => isIP(host) !== 0 && !guard.addresses.permits(host, host);

/**
 * Opens a TCP connection to the host and port of a URL.
 *
 * @throws RefusedError if its address is not permitted
 */
export function guardedConnect(guard: Guard, url: URL, lookup?: LookupFunction): Promise<Socket> {
  const host = withoutBrackets(url.hostname);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return new Promise((resolve, reject) => {
    const socket = openChecked(guard, url, lookup, (checked) => connect({ host, port, lookup: checked }));
    if (socket instanceof Error) return reject(socket);
    // A refused socket also emits `connect`, but is destroyed by then.
    socket.once('error', reject).once('connect', () => !socket.destroyed && resolve(socket));
  });
}

/**
 * Opens a socket to a URL's host. `open` creates it with the lookup that it gets. If the address is not permitted, the socket is destroyed with
 * the refusal before any data is sent. If the host itself is such an address, returns only the refusal.
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
  // Prepended: it must run before the listeners that write to the socket or begin TLS on it.
  socket.prependOnceListener('connect', () => {
    const address = socket.remoteAddress ?? 'unknown';
    if (!guard.addresses.permits(host, address)) socket.destroy(refuse(address));
  });
  return socket;
}
