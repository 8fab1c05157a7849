/** The ledger writer's process: commits for the workers that ask, and looks after the ledger in between. */
import { closeSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { PagegateError } from '../errors.ts';
import { lockFile } from '../platform/libc.ts';
import { HEARTBEAT_MS } from '../platform/watchdog.ts';
import { Committer } from './committer.ts';
import { STATE } from './counters.ts';
import { refuseNetworkFileSystem } from './database.ts';
import { openWriterLock, writerLockFile } from './presence.ts';
import type { LedgerWriterOptions, WriterMessage } from './writer.ts';
import { listenForWorkers } from './writer-link.ts';

const TICK_MS = 100;
/** How soon a change of an account reaches the workers. */
const REVISION_MS = 25;
const LOCK_TIMEOUT_MS = 5_000;

/** Takes the lock that makes this ledger writer the only one; the kernel gives it back however the process ends. */
async function takeLock(ledgerFile: string): Promise<number> {
  const fd = openWriterLock(ledgerFile);
  const deadline = Date.now() + LOCK_TIMEOUT_MS;
  while (!lockFile(fd, 'exclusive')) {
    if (Date.now() > deadline) {
      closeSync(fd);
      throw new PagegateError('ledger_in_use', `${writerLockFile(ledgerFile)} is locked.`, { file: ledgerFile });
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return fd;
}

function report(message: WriterMessage): void {
  // A parent that dies at this moment is noticed by the disconnection; without a callback a failed send would end the ledger writer.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function main(options: LedgerWriterOptions): Promise<void> {
  // Without its parent nobody would start it again; what is charged meanwhile waits in the shared counters.
  let stop = async (): Promise<void> => process.exit(0);
  process.on('disconnect', () => void stop());
  // Ctrl-C reaches the whole group: the ledger writer stays until its parent has drained the workers.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  setInterval(() => report({ kind: 'alive' }), HEARTBEAT_MS);
  mkdirSync(dirname(options.file), { recursive: true, mode: 0o750 });
  refuseNetworkFileSystem(dirname(options.file));
  await takeLock(options.file);
  const committer = new Committer(options);
  const { counters } = committer;
  committer.open();
  const workers = await listenForWorkers(options.file, {
    onAsk: () => committer.commit(),
    // A worker that was killed may have charged without marking it.
    onLeave: () => committer.commit(true),
  });
  let wasReady = counters.state === STATE.ready;
  const reportState = (): void => {
    report(wasReady ? { kind: 'ready' } : { kind: 'failed', reason: counters.reason });
  };
  reportState();
  const timer = setInterval(() => {
    if (options.durability === 'relaxed') committer.commit();
    committer.tick();
    const isReady = counters.state === STATE.ready;
    if (isReady === wasReady) return;
    wasReady = isReady;
    workers.answerAll();
    reportState();
  }, TICK_MS);
  const revisions = setInterval(() => committer.publishRevision(), REVISION_MS);
  stop = async () => {
    clearInterval(timer);
    clearInterval(revisions);
    await workers.close();
    committer.commit(true);
    committer.close();
    process.exit(0);
  };
  process.on('message', (message) => {
    if (message === 'stop') void stop();
  });
}

try {
  await main(JSON.parse(process.argv[2]!) as LedgerWriterOptions);
} catch (error) {
  // A disk that is full or closed to us is the ledger's trouble, not a defect.
  const isSystem = error instanceof Error && 'syscall' in error;
  const known = isSystem ? new PagegateError('ledger_unavailable', `${error.message}.`) : error;
  const code = known instanceof PagegateError ? known.code : 'internal';
  const message = known instanceof Error ? known.message : String(known);
  const fatal: WriterMessage = { kind: 'fatal', code, message };
  process.send?.(fatal, () => process.exit(1));
}
