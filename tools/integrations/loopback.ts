/** Shared code of the helpers that are servers. They have no authentication, so only programs on this host may reach them. */
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];
const PLACE = /^(.+):([0-9]{1,5})$/;
const PORT_MAX = 65_535;
const HTTP_PORT = 80;

/** Explanations and remedies for errors when a server starts. */
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there; end it, or name another port with --listen',
  EACCES: 'this user may not use the port; name one from 1024 with --listen',
  EADDRNOTAVAIL: 'this host does not have the address; name another with --listen',
};

/**
 * Listens on the address of `--listen`. Resolves with its host and port.
 *
 * @throws Error if it is not a port on loopback, or the server cannot listen there. The message is one line.
 */
export async function listenOnLoopback(server: Server, place: string): Promise<string> {
  const [, host = '', digits] = PLACE.exec(place) ?? [];
  const port = Number(digits);
  if (!LOOPBACK.includes(host) || port > PORT_MAX) {
    throw new Error(
      '--listen is 127.0.0.1:PORT: this server does not authenticate its clients, so only loopback is allowed',
    );
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new Error(`cannot listen on ${place}: ${REMEDIES[code ?? ''] ?? message}`)),
    );
    server.listen(port, host.replaceAll(/[[\]]/g, ''), resolve);
  });
  return `${host}:${(server.address() as AddressInfo).port}`;
}

/** Whether a request comes from a web page in a browser: it has an Origin header, or a Host that is not loopback (DNS rebinding). */
export function isFromPage({ headers, socket }: IncomingMessage): boolean {
  const { localPort } = socket;
  const loopbackHosts = LOOPBACK.flatMap((host) => [
    `${host}:${localPort}`,
    ...(localPort === HTTP_PORT ? [host] : []),
  ]);
  return headers.origin !== undefined || !loopbackHosts.includes(headers.host ?? '');
}
