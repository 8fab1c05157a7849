/** Reads the free disk space. The calls are asynchronous, so a disk that hangs does not block the primary process. */
import { statfs } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';

/** The places whose disks are checked. */
export type WatchedDisk = 'state' | 'decision_log';

/** Free space for unprivileged processes, in bytes. A place that cannot be checked is left out. */
export type FreeBytes = Readonly<Partial<Record<WatchedDisk, number>>>;

export async function readFreeBytes(config: Config): Promise<FreeBytes> {
  const freeBytes: Partial<Record<WatchedDisk, number>> = {};
  const check = async (place: WatchedDisk, path: string): Promise<void> => {
    try {
      const { bavail, bsize } = await statfs(path);
      freeBytes[place] = bavail * bsize;
    } catch {
      // It does not exist yet, or cannot be read: the part of the server that writes there reports that.
    }
  };
  await check('state', config.state_dir);
  if (config.decision_log.enabled) await check('decision_log', statePaths(config).logDir);
  return freeBytes;
}
