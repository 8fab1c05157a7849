/** The server as a whole: checks, ledger writer, workers, admin listener, control socket; started together, stopped together. */
import { readdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as NetServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import { startLedgerWriter } from '../ledger/writer.ts';
import { isLoopback } from '../network/address.ts';
import { makeFolder } from '../platform/folders.ts';
import { mapShared } from '../platform/libc.ts';
import { listenAdmin } from './admin/admin-listener.ts';
import {
  addressOf,
  currentWarnings,
  metricsText,
  type Observed,
  readiness,
  reloadAll,
  serverStatus,
} from './admin/health.ts';
import { HealthWatch } from './admin/health-watch.ts';
import type { MetricsSnapshot } from './admin/metrics.ts';
import { type Certificate, configuredCertificate } from './certificate.ts';
import { listenControl, refuseSecondServer } from './control.ts';
import type { Log } from './log.ts';
import { type KnownGoodPart, LastKnownGood } from './process/last-known-good.ts';
import { Supervisor } from './process/supervisor.ts';
import { Worker } from './process/worker.ts';
import { forkWorker, localLink, type WorkerLink } from './process/worker-link.ts';
import { burstTableSizeBytes, initializeBurstTable } from './request/burst.ts';
import type { ReloadReply, ServerStatus } from './status.ts';
import { loadUws } from './uws.ts';

export interface ServerOptions {
  readonly log: Log;
  /** One worker inside this process instead of worker processes: for tests and measurements. */
  readonly inProcess?: boolean;
}

/** The time that the ledger writer is given for its last commit when workers have taken all of the drain time, in milliseconds. */
const LAST_COMMIT_MS = 2_000;

/** A server that answers. */
export class RunningServer {
  readonly port: number;
  /** Resolves when the server has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  readonly #parts: Parts;
  readonly #resolveStopped: () => void;
  #stopping: Promise<void> | undefined;

  /** @param parts what `startServer` started, in this order; `stop` ends them in the other. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.port = parts.port;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.stopped = promise;
    this.#resolveStopped = resolve;
  }

  /** Undefined without an admin listener. */
  get adminPort(): number | undefined {
    return this.#parts.admin?.port;
  }

  /** Process ids of the workers. */
  get pids(): readonly number[] {
    return this.#parts.supervisor.pids;
  }

  /** Loads index, policy and certificate anew, in every worker; resolves with what each reports. */
  async reload(): Promise<ReloadReply> {
    return reloadAll(this.#parts);
  }

  async status(): Promise<ServerStatus> {
    return { ...(await serverStatus(this.#parts)), stopping: this.#stopping !== undefined };
  }

  /** Prometheus text. */
  async metrics(): Promise<string> {
    return metricsText(this.#parts);
  }

  /** What all workers counted since the start, those included that have ended. */
  async snapshot(): Promise<MetricsSnapshot> {
    return this.#parts.supervisor.metrics();
  }

  /** Stops gracefully, within the configured time. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const { config, supervisor, watch, ledgerWriter, lastKnownGood, admin, control, log, burstFile } = this.#parts;
    log('stopping');
    const untilMs = performance.now() + config.server.drain_seconds * 1_000;
    watch.stop();
    await supervisor.stop();
    lastKnownGood.close();
    // Before the ledger is given up: the next server that waits for it must find the socket free.
    control?.close();
    await ledgerWriter.close(Math.max(LAST_COMMIT_MS, untilMs - performance.now()));
    admin?.server.close();
    admin?.server.closeAllConnections();
    if (burstFile !== undefined) rmSync(burstFile, { force: true });
    log('stopped');
    this.#resolveStopped();
  }
}

interface Parts extends Observed {
  readonly log: Log;
  burstFile: string | undefined;
  admin: { readonly server: Server; readonly port: number } | undefined;
  control: NetServer | undefined;
}

/**
 * Starts everything, or nothing.
 *
 * @throws PagegateError plain_http_refused, server_running, listen_failed, and what the parts throw
 */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const lastKnownGood = new LastKnownGood(config, checkTransport(config));
  await refuseSecondServer(statePaths(config).socket);
  createRunDir(statePaths(config).runDir);
  const held = await findPort(config.server.host, config.server.port);
  try {
    return await startOn(held, config, lastKnownGood, options);
  } finally {
    await held.release();
  }
}

async function startOn(
  { port, release }: HeldPort,
  config: Config,
  lastKnownGood: LastKnownGood,
  options: ServerOptions,
): Promise<RunningServer> {
  const { log } = options;
  const ledgerWriter = await startLedgerWriter(
    { file: statePaths(config).ledgerFile },
    {
      onHealth: (health) => (health.ready ? log('ledger_ready') : log('ledger_unavailable', { reason: health.reason })),
      onKill: (pid, reason) => log('ledger_writer_killed', { pid, reason }),
    },
  );
  const workers = options.inProcess === true ? 1 : workerCount(config);
  let burstFile: string | undefined;
  const onKnownGood = (part: KnownGoodPart): void => lastKnownGood.retain(part);
  const start = async (number: number, signal: AbortSignal): Promise<WorkerLink> => {
    if (burstFile === undefined) return startLocal(config, port, log, onKnownGood);
    return forkWorker(
      { type: 'start', config, number, workers, port, burstFile, knownGood: lastKnownGood.parts },
      { signal, indexFd: lastKnownGood.indexFd, onKnownGood },
    );
  };
  const supervisor = new Supervisor({ workers, start, drainMs: config.server.drain_seconds * 1_000, log });
  let server: RunningServer | undefined;
  try {
    if (options.inProcess !== true) burstFile = createBurstFile(config);
    await supervisor.start();
    // Before anybody is told the port: the holder cuts the connections that it is given.
    await release();
    const parts: Parts = {
      config,
      log,
      port,
      startedAt: new Date(),
      supervisor,
      ledgerWriter,
      lastKnownGood,
      watch: new HealthWatch(config, log),
      burstFile,
      admin: undefined,
      control: undefined,
    };
    server = new RunningServer(parts);
    await parts.watch.start(() => currentWarnings(parts));
    await startAdminEndpoints(parts, server);
    log('listening', { address: addressOf(config, port), workers, admin_port: parts.admin?.port ?? null });
    return server;
  } catch (error) {
    if (server !== undefined) await server.stop();
    else {
      lastKnownGood.close();
      await ledgerWriter.close();
      if (burstFile !== undefined) rmSync(burstFile, { force: true });
    }
    throw error;
  }
}

async function startAdminEndpoints(parts: Parts, server: RunningServer): Promise<void> {
  const { config, log } = parts;
  parts.control = await listenControl(statePaths(config).socket, {
    reload: () => server.reload(),
    status: () => server.status(),
    drain: async () => {
      // The answer leaves before the sockets close.
      setTimeout(() => void server.stop(), 10);
      return 'draining';
    },
  });
  if (!config.admin.enabled) return;
  if (!isLoopback(config.admin.host)) log('admin_not_on_loopback', { host: config.admin.host });
  parts.admin = await listenAdmin(config.admin.host, config.admin.port, {
    readiness: () => readiness(parts),
    metrics: () => server.metrics(),
    status: () => server.status(),
    names: config.admin.names,
  });
}

/** The certificate, where there is TLS. */
function checkTransport(config: Config): Certificate | undefined {
  loadUws();
  const certificate = configuredCertificate(config.tls);
  if (certificate !== undefined) return certificate;
  if (!config.server.plain_http_anywhere && !isLoopback(config.server.host)) {
    throw new PagegateError('plain_http_refused', `server.host is ${config.server.host}.`, {
      host: config.server.host,
    });
  }
  return undefined;
}

interface HeldPort {
  readonly port: number;
  /** Gives up what keeps others from the port. Safe to call twice. */
  release(): Promise<void>;
}

/**
 * The port to use, known to be free: workers share their port with whoever asks to share it, so a stranger on it must be found
 * before; and a port that the kernel chose for one worker could not be shared with the others. One that the kernel chose is held until
 * the workers have it, or the kernel might choose it once more for another server.
 */
async function findPort(host: string, port: number): Promise<HeldPort> {
  // Closing waits for every connection that somebody opened meanwhile.
  const probe = createTcpServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (cause) =>
      reject(
        new PagegateError(
          'listen_failed',
          `Address ${host}, port ${port}: ${cause.message}.`,
          { host, port },
          { cause },
        ),
      ),
    );
    probe.listen({ host, port, exclusive: true, reusePort: port === 0 }, resolve);
  });
  const { port: free } = probe.address() as AddressInfo;
  const release = (): Promise<void> => new Promise((resolve) => probe.close(() => resolve()));
  if (port !== 0) await release();
  return { port: free, release };
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

/** A fresh table: counts of an earlier server are not taken over, and what a killed one left behind goes. */
function createBurstFile(config: Config): string {
  const { runDir } = statePaths(config);
  try {
    for (const name of readdirSync(runDir)) if (name.startsWith('burst-')) rmSync(join(runDir, name), { force: true });
    const path = join(runDir, `burst-${process.pid}`);
    const mapping = mapShared(path, burstTableSizeBytes(config.burst));
    initializeBurstTable(mapping.buffer);
    mapping.unmap();
    return path;
  } catch (error) {
    throw fromSystem('state_unavailable', runDir, error);
  }
}

async function startLocal(
  config: Config,
  port: number,
  log: Log,
  onKnownGood: (part: KnownGoodPart) => void,
): Promise<WorkerLink> {
  const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
  initializeBurstTable(burstMemory);
  const worker = await Worker.open({ config, number: 0, workers: 1, burstMemory, log, onKnownGood });
  try {
    await worker.listen(port);
    return localLink(worker);
  } catch (error) {
    await worker.drain();
    throw error;
  }
}
