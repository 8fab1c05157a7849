/** Unix sockets whose path is too long for a socket address of the kernel. */
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type OnReadOpts, type Server, Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** The maximum length of a path in a socket address, without its final zero byte (unix(7)). */
const PATH_MAX_BYTES = 107;
/** The maximum length of the file name if the path is opened through its folder. */
export const NAME_MAX_BYTES = 80;
/** Flag for a descriptor that refers to a folder without the right to read it (open(2)). Node has no constant for it. */
const O_PATH = 0o10000000;

/**
 * Runs a task with a path that fits into a socket address. A long path is replaced by one through its open folder.
 *
 * @param task must use the path before it returns, as bind and connect do.
 * @throws the system's error if the folder of a long path cannot be opened
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
 * Listens at a path of any length, whose file name is not longer than {@link NAME_MAX_BYTES}.
 *
 * @throws the system's error
 */
export function listenAtPath(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    withShortPath(path, (short) => server.listen(short, resolve));
  });
}

/** Connects to a path of any length. Reports every failure as an `error` event of the socket. */
export function connectToPath(path: string, onread?: OnReadOpts): Socket {
  try {
    return withShortPath(path, (short) => connect({ path: short, ...(onread && { onread }) }));
  } catch (error) {
    return new Socket().destroy(error as Error);
  }
}
