/** The file with the table of the burst limit, which all workers map. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fromSystem } from '../../errors.ts';
import { mapShared } from '../../platform/libc.ts';
import { type BurstLimits, burstTableSizeBytes, initializeBurstTable, isBurstTable } from '../request/burst-limit.ts';
import type { BeginMessage } from './restart-messages.ts';

/**
 * A fresh table. Counts of an earlier server are not taken over, and what a killed one left behind goes.
 *
 * @param keepsOthers where another server still runs here.
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

/** The table of a predecessor, so that a client's requests count on; undefined where its size or its layout is another one. */
export function sharedBurstFile(burst: BeginMessage['burst'] | undefined, limits: BurstLimits): string | undefined {
  if (!burst || burst.sizeBytes !== burstTableSizeBytes(limits) || !existsSync(burst.file)) return undefined;
  const mapping = mapShared(burst.file, burst.sizeBytes);
  const isTable = isBurstTable(mapping.buffer);
  mapping.unmap();
  return isTable ? burst.file : undefined;
}
