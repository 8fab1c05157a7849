/** Main program of the ledger writer's process: reserves lookups when workers ask, and does its periodic work in between. */
import { closeSync } from 'node:fs';
import { dirname } from 'node:path';
import { type ErrorCode, messageOf, PagegateError } from '../../errors.ts';
import { makeFolder } from '../../platform/folders.ts';
import { lockFile } from '../../platform/libc.ts';
import { HEARTBEAT_MS } from '../../platform/watchdog.ts';
import { ensureOwnCopy, FleetCopy, setCopyAside } from '../fleet/account-copy.ts';
import { HeldGrants } from '../fleet/held-grants.ts';
import { NodeSession } from '../fleet/node-session.ts';
import { refuseNetworkFileSystem } from '../store/database.ts';
import { openWriterLock, writerLockFile } from '../store/identity.ts';
import { asLedgerError } from '../store/sqlite-failures.ts';
import type { LedgerWriterOptions, WriterMessage } from '../writer.ts';
import { nearLimits } from './near-limits.ts';
import { Reserver } from './reserver.ts';
import { listenForWorkers, type WorkersLink } from './writer-socket.ts';

const TICK_MS = 100;
/** How often to check for changes of accounts, which the workers must learn of. */
const CHANGES_MS = 25;
/** How often accounts near their limits are reported to the parent. */
const NEAR_LIMITS_MS = 5_000;
const LOCK_TIMEOUT_MS = 5_000;
/** How long to wait at the end for the fleet's ledger. What could not be reported is reported after the next start. */
const LEAVE_MS = 1_500;
/** How often to try the lock: while one ledger writer follows another, nothing is reserved for this long. */
const LOCK_STEP_MS = 10;

/**
 * Takes the lock that makes this ledger writer the only one. The kernel releases it however the process ends. If it stands by, it waits as
 * long as its predecessor holds the lock.
 */
async function takeLock(ledgerFile: string, standsBy: boolean): Promise<number> {
  const fd = openWriterLock(ledgerFile);
  const deadline = Date.now() + LOCK_TIMEOUT_MS;
  while (!lockFile(fd)) {
    if (!standsBy && Date.now() > deadline) {
      closeSync(fd);
      throw new PagegateError('ledger_in_use', `${writerLockFile(ledgerFile)} is locked.`, { file: ledgerFile });
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_STEP_MS));
  }
  return fd;
}

function report(message: WriterMessage): void {
  // The disconnect event reports a parent that dies now. The callback is needed: without one, a failed send would end this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function main(options: LedgerWriterOptions): Promise<void> {
  liveWithParent();
  await takePlace(options);
  const { file, fleet } = options;
  let workers: WorkersLink | undefined;
  const grants = fleet === undefined ? undefined : new HeldGrants(file, fleet.maxStalenessSeconds);
  const reserver = new Reserver({
    file,
    onNewCounters: () => workers?.reconnectAll(),
    isSuccession: options.standsBy === true,
    ...(grants === undefined ? {} : { now: grants.now, allowance: grants.allowance, fleet: grants.link }),
  });
  reserver.open();
  const session = grants === undefined ? undefined : await startSession(options, grants, reserver);
  workers = await listenForWorkers(file, (ids) => session?.reserve(ids) ?? reserver.reserve(ids));
  const stopTimers = startTimers(reserver, workers);
  process.on('message', (message) => {
    if (message !== 'stop' && message !== 'hand_over') return;
    void end(message, reserver, session, stopTimers).finally(() => process.exit(0));
  });
}

function liveWithParent(): void {
  // End with the parent, because nothing else would start this process again. Workers may outlive it briefly: the next ledger writer sees
  // what they have charged.
  process.on('disconnect', () => process.exit(0));
  // A signal may reach the whole process group: the ledger writer stays until its parent has drained the workers.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  setInterval(() => report({ kind: 'heartbeat' }), HEARTBEAT_MS);
}

/** Becomes the only ledger writer of the file. While it waits for the lock, any message of the parent ends the process. */
async function takePlace({ file, fleet, standsBy = false }: LedgerWriterOptions): Promise<void> {
  makeFolder(dirname(file), 0o750);
  refuseNetworkFileSystem(dirname(file));
  if (standsBy) report({ kind: 'standing_by' });
  const endNow = (): never => process.exit(0);
  process.on('message', endNow);
  await takeLock(file, standsBy);
  process.off('message', endNow);
  if (fleet !== undefined) ensureOwnCopy(file, Date.now());
}

/** Starts the periodic work and the reports to the parent. Returns a function that stops them. */
function startTimers(reserver: Reserver, workers: WorkersLink): () => void {
  let wasReady = reserver.state.ready;
  const reportState = (): void => {
    const { ready, reason } = reserver.state;
    report(ready ? { kind: 'ready' } : { kind: 'failed', reason });
  };
  const tick = (): void => {
    reserver.tick();
    const isReady = reserver.state.ready;
    if (isReady === wasReady) return;
    wasReady = isReady;
    workers.answerAll();
    reportState();
  };
  const reportNearLimits = (): void => report({ kind: 'near_limits', accounts: nearLimits(reserver.usage()) });
  reportState();
  reportNearLimits();
  const timers = [
    setInterval(tick, TICK_MS),
    setInterval(() => reserver.publishChanges(), CHANGES_MS),
    setInterval(reportNearLimits, NEAR_LIMITS_MS),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}

async function end(
  how: 'stop' | 'hand_over',
  reserver: Reserver,
  session: NodeSession | undefined,
  stopTimers: () => void,
): Promise<void> {
  // The successor's session can begin only when this one has ended. This process reserves until then.
  if (how === 'hand_over') await session?.leave({ limitMs: LEAVE_MS });
  stopTimers();
  if (how === 'hand_over') return reserver.handOver();
  const standing = reserver.standing('all');
  if (reserver.close()) await session?.leave({ standing, limitMs: LEAVE_MS });
}

/** Starts the session with the fleet's ledger. */
async function startSession(
  { file, fleet }: LedgerWriterOptions,
  grants: HeldGrants,
  reserver: Reserver,
): Promise<NodeSession> {
  // Loaded only when needed: only a fleet uses the driver.
  const { connectFleet } = await import('../postgres/connect.ts');
  const { engine, ...member } = fleet!;
  const session = new NodeSession(grants, {
    ...member,
    reserver,
    copy: new FleetCopy(file),
    connect: () => connectFleet(engine),
    onFenced: (error) => {
      // The parent starts another ledger writer, which starts over with a new copy.
      reserver.forfeit();
      setCopyAside(file, Date.now());
      endWith(error);
    },
  });
  session.start();
  return session;
}

/** Reports a fatal error to the parent and ends the process. */
function endWith({ code, message }: { code: ErrorCode; message: string }): void {
  const fatal: WriterMessage = { kind: 'fatal', code, message };
  if (process.send === undefined) process.exit(1);
  process.send(fatal, () => process.exit(1));
}

const options = JSON.parse(process.argv[2]!) as LedgerWriterOptions;
try {
  await main(options);
} catch (error) {
  // An error of the system, such as a full disk or missing rights, is a problem of the ledger, not a defect of the program.
  const isSystem = error instanceof Error && 'syscall' in error;
  const known = isSystem
    ? new PagegateError('ledger_unavailable', `${error.message}.`)
    : asLedgerError(error, options.file);
  const code = known instanceof PagegateError ? known.code : 'internal';
  endWith({ code, message: messageOf(known) });
}
