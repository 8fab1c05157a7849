/**
 * Simulates a loss of power. The disk afterwards is simulated by a copy of the ledger: the write-ahead log is truncated or corrupted
 * anywhere after the last commit that the ledger writer has published, a checkpoint may be half done, and the shared counters are gone or stale.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { countersPaths, createCounters, readCounters, removeCounters } from '../../src/ledger/counters/location.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import { readIdentity } from '../../src/ledger/store/identity.ts';
import { Reserver } from '../../src/ledger/writer/reserver.ts';
import type { Random } from '../random.ts';

/** Sizes of the write-ahead log's header and of the header before each page (sqlite.org/fileformat2.html, 4.1). */
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

interface Frame {
  /** From 1. */
  readonly page: number;
  readonly isCommit: boolean;
  readonly start: number;
  readonly end: number;
}

/** Returns the valid frames of a log: those with the salt of its header. */
function framesOf(log: Buffer): Frame[] {
  if (log.length < LOG_HEADER_BYTES) return [];
  const pageSize = log.readUInt32BE(8);
  const frames: Frame[] = [];
  for (let start = LOG_HEADER_BYTES; start + FRAME_HEADER_BYTES + pageSize <= log.length; ) {
    const hasSalt = log.subarray(start + 8, start + 16).equals(log.subarray(16, 24));
    if (!hasSalt) break;
    const end = start + FRAME_HEADER_BYTES + pageSize;
    frames.push({ page: log.readUInt32BE(start), isCommit: log.readUInt32BE(start + 4) !== 0, start, end });
    start = end;
  }
  return frames;
}

/** The files of a ledger at one moment, while its ledger writer is stopped. */
export interface Snapshot {
  readonly ledgerId: string;
  readonly file: Buffer;
  readonly log: Buffer;
  readonly counters: Buffer | undefined;
  /** Number of the last commit that the ledger writer has published. */
  readonly published: number;
}

export function takeSnapshot(ledgerFile: string): Snapshot {
  const ledgerId = readIdentity(ledgerFile)?.ledgerId ?? '';
  const [path = ''] = countersPaths(ledgerFile, ledgerId);
  return {
    ledgerId,
    file: readFileSync(ledgerFile),
    log: readFileSync(`${ledgerFile}-wal`),
    counters: readFileSync(path),
    published: readCounters(ledgerFile, ledgerId)?.status.commits ?? 0,
  };
}

/** Writes a ledger with the first `logSize` bytes of its log. Returns the number of its latest commit. */
function commitsWith({ file, log }: Snapshot, folder: string, logSize: number): number {
  const path = join(folder, 'probe.sqlite');
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  writeFileSync(path, file);
  writeFileSync(`${path}-wal`, log.subarray(0, logSize));
  const database = openDatabase(path, { mustExist: true, isLocked: true });
  try {
    return Number(database.prepare('SELECT commits FROM ledger').pluck().get());
  } finally {
    database.close();
  }
}

/** Returns the offset in the log at which the published commit ends. @throws Error if the files do not have the published commit */
function publishedEnd(snapshot: Snapshot, folder: string): number {
  const ends = [0, ...framesOf(snapshot.log).flatMap(({ isCommit, end }) => (isCommit ? [end] : []))];
  let [low, high] = [0, ends.length - 1];
  if (commitsWith(snapshot, folder, ends[high]!) < snapshot.published)
    throw new Error(`Commit ${snapshot.published} was published, and the log does not hold it.`);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (commitsWith(snapshot, folder, ends[middle]!) >= snapshot.published) high = middle;
    else low = middle + 1;
  }
  return ends[low]!;
}

/** Returns the files after one of the ways in which the power may be lost. The first `kept` bytes of the log stay intact. */
function lose(snapshot: Snapshot, kept: number, random: Random): { readonly file: Buffer; readonly log: Buffer } {
  const file = Buffer.from(snapshot.file);
  let log = Buffer.from(snapshot.log);
  const rest = log.length - kept;
  const fate = random.below(3);
  if (fate === 0) log = log.subarray(0, kept + random.below(rest + 1));
  else if (fate === 1) for (let i = 0; i < 64 && rest > 0; i += 1) log[kept + random.below(rest)] = random.below(256);
  if (random.below(2) === 0) return { file, log };
  // Simulate a checkpoint that is half done, with pages of which only a half was written.
  const frames = framesOf(snapshot.log).filter(({ end }) => end <= kept);
  for (const { page, start, end } of frames) {
    const size = end - start - FRAME_HEADER_BYTES;
    if (random.below(2) === 0 || page * size > file.length) continue;
    const written = random.below(3) === 0 ? size / 2 : size;
    snapshot.log.copy(file, (page - 1) * size, start + FRAME_HEADER_BYTES, start + FRAME_HEADER_BYTES + written);
  }
  return { file, log };
}

/** Gives the copy counters that must not be trusted: none, older ones, or those of another boot. */
function putCounters(file: string, { ledgerId, counters }: Snapshot, random: Random): void {
  const fate = random.below(3);
  const [path = ''] = countersPaths(file, ledgerId);
  if (fate === 1 && counters !== undefined) writeFileSync(path, counters, { mode: 0o600 });
  if (fate !== 2) return;
  const created = createCounters(file, ledgerId);
  created.counters.reset(1, { cycle: 0, limit: 1_000_000_000, reserved: 1, left: 1 });
  created.close();
  const bytes = readFileSync(path);
  // The boot id comes after the ledger's.
  bytes[24]! ^= 1;
  writeFileSync(path, bytes);
}

/** Recovers a copy of the ledger after a loss of power, passes it to `inspect`, and removes it. */
export async function afterPowerLoss<T>(
  snapshot: Snapshot,
  folder: string,
  random: Random,
  inspect: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  const place = join(folder, `power-${random.below(2 ** 31)}`, 'ledger');
  const file = join(place, 'ledger.sqlite');
  mkdirSync(place, { recursive: true });
  try {
    const { file: bytes, log } = lose(snapshot, publishedEnd(snapshot, place), random);
    writeFileSync(file, bytes);
    writeFileSync(`${file}-wal`, log);
    putCounters(file, snapshot, random);
    const reserver = new Reserver({ file });
    if (!reserver.open()) throw new Error(`The ledger did not recover: ${reserver.state.reason}`);
    const ledger = await openLedger({ file, keyFile: join(folder, 'keys', 'none'), create: false });
    try {
      return await inspect(ledger);
    } finally {
      await ledger.close();
      reserver.close();
    }
  } finally {
    removeCounters(file, snapshot.ledgerId);
    rmSync(dirname(place), { recursive: true, force: true });
  }
}
