/** The open ledger of a ledger writer: the database, its readers and writers, and the watch over its files. */

import type { Database } from '../../platform/sqlite.ts';
import { openDatabase } from '../store/database.ts';
import {
  readIdentity,
  refuseForeignLedger,
  refuseLostLedger,
  refuseMovedLedger,
  setEarlierLogAside,
} from '../store/identity.ts';
import { createMeterStore, type MeterStore } from '../store/meters.ts';
import { createReader, type Reader } from '../store/records.ts';
import { FileWatch } from './file-watch.ts';

/** How long a commit waits for another program that has locked the ledger. Less than requests wait. */
const BUSY_TIMEOUT_MS = 4_000;

export interface OpenedLedger {
  readonly database: Database;
  readonly read: Reader;
  readonly meters: MeterStore;
  readonly watch: FileWatch;
  readonly ledgerId: string;
}

export interface OpenForWritingOptions {
  /** The id of the ledger that this process had open before; undefined the first time. */
  readonly earlierId: string | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Milliseconds to wait for another writer before a commit fails. */
  readonly busyTimeoutMs?: number | undefined;
}

/**
 * Opens the ledger that belongs here for writing. Creates it if there never was one.
 *
 * @param file the SQLite file. The caller must hold the ledger writer's lock.
 * @throws PagegateError ledger_unavailable if it is lost or is another ledger, ledger_moved, ledger_version, ledger_on_network
 */
export function openForWriting(file: string, options: OpenForWritingOptions): OpenedLedger {
  const { earlierId, nowMs, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  refuseLostLedger(file, earlierId);
  setEarlierLogAside(file, nowMs);
  const isKnown = earlierId !== undefined || readIdentity(file) !== undefined;
  const database = openDatabase(file, { mustExist: isKnown, isLocked: true, busyTimeoutMs });
  try {
    const read = createReader(database);
    const ledgerId = read.ledgerId();
    refuseForeignLedger(file, ledgerId);
    refuseMovedLedger(file, read.movedTo());
    return { database, read, meters: createMeterStore(database), watch: new FileWatch(file), ledgerId };
  } catch (error) {
    database.close();
    throw error;
  }
}
