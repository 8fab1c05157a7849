/** Starts the server as a whole: start-up checks, ledger writer, workers, admin listener and control socket. */
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, isPlainBeyondLoopback } from '../config/config.ts';
import { ledgerLocation, statePaths } from '../config/paths.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import { startLedgerWriter } from '../ledger/writer.ts';
import { isLoopback } from '../network/address.ts';
import { makeFolder } from '../platform/folders.ts';
import { PROGRAM_VERSION } from '../version.ts';
import { listenAdmin } from './admin/admin-listener.ts';
import { currentWarnings, endpointUrl, readiness } from './admin/health.ts';
import { HealthWatch } from './admin/health-watch.ts';
import { refuseSecondServer } from './control-socket.ts';
import type { Log } from './log.ts';
import { createBurstFile, sharedBurstFile } from './process/burst-file.ts';
import { findPort, type HeldPort } from './process/port.ts';
import type { BeginMessage, SuccessorReadiness } from './process/restart-messages.ts';
import type { Predecessor, TakenOver } from './process/restart-new-server.ts';
import type { ServerProgram } from './process/restart-old-server.ts';
import { Supervisor } from './process/supervisor.ts';
import { drainTimeoutMs } from './process/worker.ts';
import { forkWorker } from './process/worker-link.ts';
import { type Certificate, configuredCertificate } from './read-certificate.ts';
import { RunningServer, type ServerParts } from './running-server.ts';
import { LastKnownGood } from './swap/last-known-good.ts';
import { notifySystemd } from './systemd.ts';
import { loadUws } from './uws.ts';

export { findPredecessor } from './process/restart-new-server.ts';
export type { ServerProgram } from './process/restart-old-server.ts';
export type { RunningServer } from './running-server.ts';

export interface ServerOptions {
  readonly log: Log;
  /** Starts a worker; by default, each worker is a process. */
  readonly startWorker?: typeof forkWorker;
  /** Command that starts the successor. Without it, this server cannot be restarted. */
  readonly program?: ServerProgram | undefined;
  /** The running server that this one replaces. */
  readonly predecessor?: Predecessor | undefined;
}

/**
 * Starts all parts; if one fails, stops those already started. With a predecessor, takes over from it.
 *
 * @throws PagegateError plain_http_refused, bad_ledger_url, server_running, listen_failed, and the errors of the parts.
 */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  if (config.ledger.url !== null) (await import('../ledger/fleet.ts')).checkLedgerUrl(config.ledger.url);
  const lastKnownGood = new LastKnownGood(config, checkTransport(config));
  const { socket, runDir, ledgerFile } = statePaths(config);
  options.predecessor?.hello(ledgerFile, socket);
  const shared = await options.predecessor?.begin;
  if (shared === undefined) await refuseSecondServer(socket);
  createRunDir(runDir);
  const held = await portFor(config, shared);
  try {
    return await startOn(held, config, { lastKnownGood, shared, options });
  } finally {
    await held.release();
  }
}

/** Returns the predecessor's port if this server uses the same host and port: the workers of both then share it. Otherwise calls findPort. */
async function portFor({ server: { host, port } }: Config, shared: BeginMessage | undefined): Promise<HeldPort> {
  if (shared === undefined || shared.host !== host || (port !== 0 && port !== shared.port)) return findPort(host, port);
  return { port: shared.port, release: async () => {} };
}

interface Start {
  readonly lastKnownGood: LastKnownGood;
  readonly shared: BeginMessage | undefined;
  readonly options: ServerOptions;
}

async function startOn({ port, release }: HeldPort, config: Config, start: Start): Promise<RunningServer> {
  const { lastKnownGood, shared, options } = start;
  const { log, predecessor, program } = options;
  const ledgerWriter = await startLedgerWriter(
    { ...ledgerLocation(config), standsBy: predecessor !== undefined },
    {
      onHealth: (health) => (health.ready ? log('ledger_ready') : log('ledger_unavailable', { reason: health.reason })),
      onKill: (pid, reason) => log('ledger_writer_killed', { pid, reason }),
    },
  );
  const sharedBurst = sharedBurstFile(shared?.burst, config.burst);
  let burstFile = sharedBurst;
  let server: RunningServer | undefined;
  try {
    burstFile ??= createBurstFile(statePaths(config).runDir, config.burst, shared !== undefined);
    const supervisor = createSupervisor(config, port, burstFile, start);
    await supervisor.start();
    // Before the port is announced: the socket that holds it destroys every connection it accepts.
    await release();
    const parts: ServerParts = {
      config,
      port,
      startedAt: new Date(),
      supervisor,
      ledgerWriter,
      lastKnownGood,
      log,
      program,
      predecessorGone: predecessor?.gone ?? Promise.resolve(),
      inPlace: predecessor === undefined ? Promise.resolve() : predecessor.committed.then(() => sleep(CLOSED_MS)),
      watch: new HealthWatch(config, log),
      burstFile,
      admin: undefined,
      control: undefined,
    };
    server = new RunningServer(parts);
    await parts.watch.start(() => currentWarnings(parts));
    if (predecessor === undefined) await startAdminEndpoints(parts, server);
    else await takeOver(predecessor, parts, server, sharedBurst !== undefined);
    const address = endpointUrl(config, port);
    log('listening', { address, workers: workerCount(config), admin_port: parts.admin?.port ?? null });
    if (predecessor === undefined) notifyReady(log, address);
    return server;
  } catch (error) {
    if (server !== undefined) await server.stop();
    else {
      lastKnownGood.close();
      await ledgerWriter.close();
      if (burstFile !== undefined && burstFile !== sharedBurst) rmSync(burstFile, { force: true });
    }
    throw error;
  }
}

/** Creates the supervisor without starting its workers. */
function createSupervisor(
  config: Config,
  port: number,
  burstFile: string,
  { lastKnownGood, options: { log, startWorker = forkWorker } }: Start,
): Supervisor {
  const workers = workerCount(config);
  return new Supervisor({
    workers,
    start: (number, signal) =>
      startWorker(
        { type: 'start', config, number, workers, port, burstFile, knownGood: lastKnownGood.parts },
        { signal, indexFd: lastKnownGood.indexFd, onKnownGood: (part) => lastKnownGood.retain(part) },
      ),
    drainTimeoutMs: (keepsIdle) => drainTimeoutMs(config.server, keepsIdle),
    log,
  });
}

const notifyReady = (log: Log, address: string): void =>
  notifySystemd(log, { READY: 1, STATUS: `pagegate ${PROGRAM_VERSION} answers on ${address}` });

/** Longer than a predecessor needs to close its sockets, in milliseconds. */
const CLOSED_MS = 1_000;

/** Takes over from a server whose workers listen on the same port. If it dies during the hand-over, this server continues alone. */
async function takeOver(
  predecessor: Predecessor,
  parts: ServerParts,
  server: RunningServer,
  keepsBurstFile: boolean,
): Promise<void> {
  const { config, log, supervisor, ledgerWriter } = parts;
  predecessor.ready(await readiness(parts), keepsBurstFile);
  const taken = await predecessor.take;
  await startAdmin(parts, server, taken);
  if (taken !== undefined) await ledgerWriter.inPlace;
  await server.listenControl(taken !== undefined);
  // Steer to the first of our places only: when an old socket closes, the last socket takes its place, so our first place is the last to be empty.
  if (taken !== undefined) await supervisor.ask('steer', { first: taken.listening, count: 1 });
  predecessor.taken(() => successorReadiness(parts));
  const finish = async (): Promise<void> => {
    await predecessor.committed;
    log('taken_over', { alone: taken === undefined });
    notifyReady(log, endpointUrl(config, parts.port));
    await parts.inPlace;
    await supervisor.ask('steer');
  };
  void finish();
}

/** Returns the readiness of this server. A worker that has died since the start counts as a reason against it. */
async function successorReadiness(parts: ServerParts): Promise<SuccessorReadiness> {
  const { reasons } = await readiness(parts);
  const all = parts.supervisor.restarts === 0 ? reasons : [...reasons, 'a worker died'];
  return { ready: all.length === 0, reasons: all };
}

async function startAdminEndpoints(parts: ServerParts, server: RunningServer): Promise<void> {
  await server.listenControl(false);
  await startAdmin(parts, server, undefined);
}

/** Starts the admin listener. Uses the predecessor's socket if that listens on the configured address. */
async function startAdmin(parts: ServerParts, server: RunningServer, taken: TakenOver | undefined): Promise<void> {
  const { host, port, enabled } = parts.config.admin;
  const { admin, adminServer } = taken ?? {};
  const isOurs = enabled && admin?.host === host && (port === 0 || port === admin.port);
  if (!isOurs) adminServer?.close();
  if (!enabled) return;
  if (!isLoopback(host)) parts.log('admin_not_on_loopback', { host });
  const sources = {
    readiness: () => server.readiness(),
    metrics: () => server.metrics(),
    status: () => server.status(),
    names: parts.config.admin.names,
  };
  parts.admin = await listenAdmin(host, port, sources, isOurs ? adminServer : undefined);
}

/**
 * Checks that the transport loads and that plain HTTP is permitted. Returns the certificate, or undefined without TLS.
 *
 * @throws PagegateError transport_unavailable, tls_unusable, plain_http_refused
 */
function checkTransport(config: Config): Certificate | undefined {
  loadUws();
  const certificate = configuredCertificate(config.tls);
  if (certificate !== undefined) return certificate;
  const { host, plain_http_anywhere } = config.server;
  if (!plain_http_anywhere && isPlainBeyondLoopback(config, host))
    throw new PagegateError('plain_http_refused', `server.host is ${host}.`, { host });
  return undefined;
}

function workerCount(config: Config): number {
  return config.server.workers === 'auto' ? availableParallelism() : config.server.workers;
}

function createRunDir(path: string): void {
  try {
    makeFolder(path, 0o750);
  } catch (error) {
    throw fromSystem('state_unavailable', path, error);
  }
}
