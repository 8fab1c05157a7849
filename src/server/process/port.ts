/** Finds the port of the server before its workers listen on it. */
import { type AddressInfo, createServer } from 'node:net';
import { PagegateError } from '../../errors.ts';

export interface HeldPort {
  readonly port: number;
  /** Closes the socket that holds the port. Safe to call twice. */
  release(): Promise<void>;
}

/**
 * Returns the port to use and checks that it is free. The workers' sockets can share their port with any other process, so a conflict must be
 * detected before they listen. For port 0, the kernel chooses a port here, because one chosen for a worker could not be shared with the
 * others. It is held until the workers listen, or the kernel might choose it again for another server.
 *
 * @throws PagegateError listen_failed
 */
export async function findPort(host: string, port: number): Promise<HeldPort> {
  // Closing waits for open connections, so every one that a client opens meanwhile is destroyed.
  const probe = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (cause) =>
      reject(
        new PagegateError(
          'listen_failed',
          `Address ${host}, port ${port}: ${cause.message}.`,
          { host, port },
          { cause },
        ),
      ),
    );
    probe.listen({ host, port, exclusive: true, reusePort: port === 0 }, resolve);
  });
  const { port: free } = probe.address() as AddressInfo;
  const release = (): Promise<void> => new Promise((resolve) => probe.close(() => resolve()));
  if (port !== 0) await release();
  return { port: free, release };
}
