/** Unix sockets whose path is longer than an address of the kernel holds. */
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type OnReadOpts, type Server, Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** The longest path in an address, without its final zero byte (unix(7)). */
const PATH_MAX_BYTES = 107;
/** The longest last part of a path that is reached through its folder. */
export const NAME_MAX_BYTES = 80;
/** A descriptor that names a folder and gives no right to read it (open(2)); Node has no name for it. */
const O_PATH = 0o10000000;

/**
 * Runs a task with a path that fits into an address: a long one is reached through its open folder.
 *
 * @param task uses the path before it returns; bind and connect do.
 * @throws what the system says of the folder of a long path
 */
function withShortPath<T>(path: string, task: (path: string) => T): T {
  if (Buffer.byteLength(path) <= PATH_MAX_BYTES) return task(path);
  const folder = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
  try {
    return task(`/proc/self/fd/${folder}/${basename(path)}`);
  } finally {
    closeSync(folder);
  }
}

/**
 * Listens at a path of any length, whose last part is not longer than {@link NAME_MAX_BYTES}.
 *
 * @throws what the system says
 */
export function listenAtPath(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    withShortPath(path, (short) => server.listen(short, resolve));
  });
}

/** Connects to a path of any length. Whatever fails is an event of the socket. */
export function connectToPath(path: string, onread?: OnReadOpts): Socket {
  try {
    return withShortPath(path, (short) => connect({ path: short, ...(onread && { onread }) }));
  } catch (error) {
    return new Socket().destroy(error as Error);
  }
}
