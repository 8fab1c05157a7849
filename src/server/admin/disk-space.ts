/** What the primary process looks at from time to time: the free space of its disks. A disk that hangs delays nobody here. */
import { statfs } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';

/** The places whose disks are looked at. */
export type WatchedDisk = 'state' | 'decision_log';

/** What an unprivileged process may still write, in bytes; a place that cannot be looked at is left out. */
export type FreeBytes = Readonly<Partial<Record<WatchedDisk, number>>>;

export async function readFreeBytes(config: Config): Promise<FreeBytes> {
  const freeBytes: Partial<Record<WatchedDisk, number>> = {};
  const look = async (place: WatchedDisk, path: string): Promise<void> => {
    try {
      const { bavail, bsize } = await statfs(path);
      freeBytes[place] = bavail * bsize;
    } catch {
      // It is not there yet, or cannot be read: whoever writes there says so.
    }
  };
  await look('state', config.state_dir);
  if (config.decision_log.enabled) await look('decision_log', statePaths(config).logDir);
  return freeBytes;
}
