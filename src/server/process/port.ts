/** The port that a server listens on, before its workers do. */
import { type AddressInfo, createServer } from 'node:net';
import { PagegateError } from '../../errors.ts';

export interface HeldPort {
  readonly port: number;
  /** Gives up what keeps others from the port. Safe to call twice. */
  release(): Promise<void>;
}

/**
 * The port to use, known to be free: workers share their port with whoever asks to share it, so a stranger on it must be found
 * before; and a port that the kernel chose for one worker could not be shared with the others. One that the kernel chose is held until
 * the workers have it, or the kernel might choose it once more for another server.
 */
export async function findPort(host: string, port: number): Promise<HeldPort> {
  // Closing waits for every connection that somebody opened meanwhile.
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
