/** What the helpers with a server of their own have in common: it asks nobody who they are, so only programs of this host reach it. */
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];
const PLACE = /^(.+):([0-9]{1,5})$/;
const PORT_MAX = 65_535;
const HTTP_PORT = 80;

/** Why a server did not start, for those that have a remedy. */
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there; end it, or name another port with --listen',
  EACCES: 'this user may not use the port; name one from 1024 with --listen',
  EADDRNOTAVAIL: 'this host does not have the address; name another with --listen',
};

/**
 * Listens at what `--listen` names, and says so.
 *
 * @throws Error where it is not a port on loopback, or nobody can listen there; the message is one line
 */
export async function listenOnLoopback(server: Server, place: string): Promise<string> {
  const [, host = '', digits] = PLACE.exec(place) ?? [];
  const port = Number(digits);
  if (!LOOPBACK.includes(host) || port > PORT_MAX) {
    throw new Error('--listen is 127.0.0.1:PORT: this server asks nobody who they are, so it stays on loopback');
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new Error(`cannot listen on ${place}: ${REMEDIES[code ?? ''] ?? message}`)),
    );
    server.listen(port, host.replaceAll(/[[\]]/g, ''), resolve);
  });
  return `${host}:${(server.address() as AddressInfo).port}`;
}

/** Whether a request comes from a page in a browser: it names its origin, or a name of its own that leads to loopback. */
export function isFromPage({ headers, socket }: IncomingMessage): boolean {
  const { localPort } = socket;
  const own = LOOPBACK.flatMap((host) => [`${host}:${localPort}`, ...(localPort === HTTP_PORT ? [host] : [])]);
  return headers.origin !== undefined || !own.includes(headers.host ?? '');
}
