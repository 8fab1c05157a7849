/** The ledger writer's process: reserves for the workers that ask, and looks after the ledger in between. */
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
/** How soon a change of an account reaches the workers. */
const CHANGES_MS = 25;
/** How often accounts near their limits are told. */
const NEAR_LIMITS_MS = 5_000;
const LOCK_TIMEOUT_MS = 5_000;
/** How long an end waits for the fleet's ledger; what could not be said is said at the next start. */
const LEAVE_MS = 1_500;
/** How soon a lock that was given up is noticed: the time that nobody reserves while one ledger writer follows another. */
const LOCK_STEP_MS = 10;

/**
 * Takes the lock that makes this ledger writer the only one; the kernel gives it back however the process ends. One that stands by waits for
 * as long as its predecessor has it.
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
  // A parent that dies at this moment is noticed by the disconnection; without a callback a failed send would end the ledger writer.
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
  // Without its parent nobody would start it again. The workers may live a little longer: the next ledger writer finds what they use.
  process.on('disconnect', () => process.exit(0));
  // A signal may reach the whole group: the ledger writer stays until its parent has drained the workers.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  setInterval(() => report({ kind: 'heartbeat' }), HEARTBEAT_MS);
}

/** Becomes the only ledger writer of the file. Any message of the parent ends one that still waits. */
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

/** Looks after the ledger between the questions of the workers, and reports to the parent; returns what ends that. */
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
  // The successor's session can begin when this one has ended; until then this one reserves.
  if (how === 'hand_over') await session?.leave({ limitMs: LEAVE_MS });
  stopTimers();
  if (how === 'hand_over') return reserver.handOver();
  const standing = reserver.standing('all');
  if (reserver.close()) await session?.leave({ standing, limitMs: LEAVE_MS });
}

/** Begins to talk to the fleet's ledger. */
async function startSession(
  { file, fleet }: LedgerWriterOptions,
  grants: HeldGrants,
  reserver: Reserver,
): Promise<NodeSession> {
  // Only a fleet needs the driver.
  const { connectFleet } = await import('../postgres/connect.ts');
  const { engine, ...member } = fleet!;
  const session = new NodeSession(grants, {
    ...member,
    reserver,
    copy: new FleetCopy(file),
    connect: () => connectFleet(engine),
    onFenced: (error) => {
      // The parent starts a ledger writer that starts over.
      reserver.forfeit();
      setCopyAside(file, Date.now());
      endWith(error);
    },
  });
  session.start();
  return session;
}

/** Tells the parent why, and ends. */
function endWith({ code, message }: { code: ErrorCode; message: string }): void {
  const fatal: WriterMessage = { kind: 'fatal', code, message };
  if (process.send === undefined) process.exit(1);
  process.send(fatal, () => process.exit(1));
}

const options = JSON.parse(process.argv[2]!) as LedgerWriterOptions;
try {
  await main(options);
} catch (error) {
  // A disk that is full or closed to us is the ledger's trouble, not a defect.
  const isSystem = error instanceof Error && 'syscall' in error;
  const known = isSystem
    ? new PagegateError('ledger_unavailable', `${error.message}.`)
    : asLedgerError(error, options.file);
  const code = known instanceof PagegateError ? known.code : 'internal';
  endWith({ code, message: messageOf(known) });
}
