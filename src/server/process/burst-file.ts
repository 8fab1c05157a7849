/** The file that holds the table of the burst limit. All workers map it into memory. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fromSystem } from '../../errors.ts';
import { mapShared } from '../../platform/libc.ts';
import { type BurstLimits, burstTableSizeBytes, initializeBurstTable, isBurstTable } from '../request/burst-limit.ts';
import type { BeginMessage } from './restart-messages.ts';

/**
 * Creates an empty table. Removes files that earlier servers left behind; their counts are not taken over.
 *
 * @param keepsOthers keeps the files of other servers, because one still runs.
 * @throws PagegateError state_unavailable
 */
export function createBurstFile(runDir: string, limits: BurstLimits, keepsOthers: boolean): string {
  try {
    if (!keepsOthers)
      for (const name of readdirSync(runDir))
        if (name.startsWith('burst-')) rmSync(join(runDir, name), { force: true });
    const path = join(runDir, `burst-${process.pid}`);
    const mapping = mapShared(path, burstTableSizeBytes(limits));
    initializeBurstTable(mapping.buffer);
    mapping.unmap();
    return path;
  } catch (error) {
    throw fromSystem('state_unavailable', runDir, error);
  }
}

/** Returns the predecessor's file, so that the counts of clients continue. Undefined if its size or its layout differs. */
export function sharedBurstFile(burst: BeginMessage['burst'] | undefined, limits: BurstLimits): string | undefined {
  if (!burst || burst.sizeBytes !== burstTableSizeBytes(limits) || !existsSync(burst.file)) return undefined;
  const mapping = mapShared(burst.file, burst.sizeBytes);
  const isTable = isBurstTable(mapping.buffer);
  mapping.unmap();
  return isTable ? burst.file : undefined;
}
