/** A running server: status, commands, restart and stop. */
import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { statePaths } from '../config/paths.ts';
import { PagegateError } from '../errors.ts';
import { adminUrl, metricsText, type ObservedServer, readiness, reloadAll, serverStatus } from './admin/health.ts';
import { type ControlHandlers, type ControlSocket, listenControl } from './control-socket.ts';
import { failureFields, type Log } from './log.ts';
import type { MetricsSnapshot } from './metric-definitions.ts';
import { type ServerProgram, Successor } from './process/restart-old-server.ts';
import { burstTableSizeBytes } from './request/burst-limit.ts';
import type { Readiness, ReloadReply, RestartReply, ServerStatus } from './status.ts';
import { notifySystemd } from './systemd.ts';

/** The parts of a server. */
export interface ServerParts extends ObservedServer {
  readonly log: Log;
  /** Command that starts the successor; undefined if this server cannot be restarted. */
  readonly program: ServerProgram | undefined;
  /** Resolves when the predecessor's workers no longer charge in the shared counters. */
  readonly predecessorGone: Promise<void>;
  /** Resolves when the predecessor no longer occupies places that this server needs, such as the console's address. */
  readonly inPlace: Promise<void>;
  burstFile: string | undefined;
  admin: { readonly server: Server; readonly port: number } | undefined;
  control: ControlSocket | undefined;
}

/** Time for the ledger writer's last commit when the workers have used up the drain time, in milliseconds. */
const LAST_COMMIT_MS = 2_000;
/** Default time that a restart waits for the new server to become ready. */
const RESTART_WAIT_SECONDS = 120;
const RESTART_WAIT_MAX_SECONDS = 3_600;
/** The first process of a container; when it ends, the container ends. */
const FIRST_PID = 1;
/** Delay before a stop, so that the control socket's answer is sent before the sockets close, in milliseconds. */
const ANSWER_MS = 10;

/** A running server. It reports its state, takes commands, and stops or hands over to a successor. */
export class RunningServer {
  readonly port: number;
  /** Resolves when the server has stopped, for any reason. */
  readonly stopped: Promise<void>;
  /** Resolves when a successor has taken over or the server begins to stop. */
  readonly leaving: Promise<void>;
  readonly #parts: ServerParts;
  readonly #resolveStopped: () => void;
  readonly #resolveLeaving: () => void;
  #stopping: Promise<void> | undefined;
  #successor: Successor | undefined;
  /** Settles when the restart in progress has ended. */
  #restarting: Promise<unknown> | undefined;
  #isHandedOver = false;

  /** @param parts the parts that `startServer` has started. */
  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.port = parts.port;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.stopped = promise;
    this.#resolveStopped = resolve;
    const leaving = Promise.withResolvers<void>();
    this.leaving = leaving.promise;
    this.#resolveLeaving = leaving.resolve;
  }

  /** Resolves when the predecessor no longer occupies places that this server needs. Without a predecessor it is already resolved. */
  get inPlace(): Promise<void> {
    return this.#parts.inPlace;
  }

  /** URL of the admin listener; undefined without one. */
  get adminUrl(): string | undefined {
    const { admin, config } = this.#parts;
    return admin === undefined ? undefined : adminUrl(config, admin.port);
  }

  /** Process ids of the workers. */
  get pids(): readonly number[] {
    return this.#parts.supervisor.pids;
  }

  /** Reloads index, policy and certificate in every worker. Resolves with the report of each. */
  async reload(): Promise<ReloadReply> {
    return reloadAll(this.#parts);
  }

  /** Whether lookups are answered, by this server or by its successor. */
  async readiness(): Promise<Readiness> {
    // A connection accepted before the hand-over may send this request when the workers have begun to stop.
    return this.#isHandedOver ? { ready: true, reasons: [], warnings: [] } : readiness(this.#parts);
  }

  async status(): Promise<ServerStatus> {
    return { ...(await serverStatus(this.#parts)), stopping: this.#stopping !== undefined };
  }

  /** All metrics in the Prometheus text format. */
  async metrics(): Promise<string> {
    return metricsText(this.#parts);
  }

  /** Sum of the metrics of all workers since the start, including workers that have ended. */
  async snapshot(): Promise<MetricsSnapshot> {
    return this.#parts.supervisor.metrics();
  }

  /** Opens the control socket. With `mayReplace`, it replaces the socket of another running server. */
  async listenControl(mayReplace: boolean): Promise<void> {
    const soon = (task: () => void): void => void setTimeout(task, ANSWER_MS);
    const handlers: ControlHandlers = {
      reload: () => this.reload(),
      status: () => this.status(),
      drain: async () => {
        soon(() => void this.stop());
        return 'draining';
      },
      restart: async ({ wait_seconds = RESTART_WAIT_SECONDS }) => {
        if (!Number.isFinite(wait_seconds)) throw new PagegateError('usage');
        const reply = await this.restart(wait_seconds);
        soon(() => void this.stop());
        return reply;
      },
    };
    this.#parts.control = await listenControl(statePaths(this.#parts.config).socket, handlers, mayReplace);
  }

  /**
   * Starts the successor and hands everything over to it. Call {@link stop} afterwards: it answers the open requests.
   *
   * @throws PagegateError restart_busy, restart_failed, restart_needs_stop: this server then continues as before. restart_stopped: it stops.
   */
  async restart(waitSeconds: number): Promise<RestartReply> {
    if (this.#stopping !== undefined || this.#restarting !== undefined) throw new PagegateError('restart_busy');
    const restarting = this.#restart(Math.min(Math.max(1, waitSeconds), RESTART_WAIT_MAX_SECONDS) * 1_000);
    this.#restarting = restarting;
    try {
      return await restarting;
    } finally {
      if (!this.#isHandedOver) this.#restarting = undefined;
    }
  }

  async #restart(waitMs: number): Promise<RestartReply> {
    const { config, port, program, log, supervisor, ledgerWriter, admin, burstFile } = this.#parts;
    if (program === undefined) throw new PagegateError('restart_needs_stop', 'It is part of another program.');
    if (process.pid === FIRST_PID)
      throw new PagegateError('restart_needs_stop', 'It is the first process of a container, which ends with it.');
    const { ledgerFile, socket } = statePaths(config);
    const burst = burstFile === undefined ? null : { file: burstFile, sizeBytes: burstTableSizeBytes(config.burst) };
    log('restarting');
    const successor = new Successor({
      program,
      supervisor,
      ledgerWriter,
      ledgerFile,
      socket,
      begin: { host: config.server.host, port, burst },
      admin: admin === undefined ? undefined : { ...admin, host: config.admin.host },
      isReady: async () => (await readiness(this.#parts)).ready,
    });
    this.#successor = successor;
    try {
      const reply = await successor.takeOver(waitMs);
      this.#isHandedOver = true;
      this.#resolveLeaving();
      notifySystemd(log, { MAINPID: reply.pid });
      successor.commit();
      // From now on only the successor reports health and metrics.
      admin?.server.close();
      if (successor.keepsBurstFile) this.#parts.burstFile = undefined;
      log('handed_over', { pid: reply.pid, version: reply.version });
      return reply;
    } catch (error) {
      this.#successor = undefined;
      // A stop kills the successor.
      if (this.#stopping === undefined) log('restart_failed', failureFields(error));
      // The failed successor may have replaced our socket.
      this.#parts.control?.close();
      await this.listenControl(true);
      throw this.#stopping === undefined ? error : new PagegateError('restart_stopped');
    }
  }

  /** Stops gracefully, within the configured time. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const { config, supervisor, ledgerWriter, lastKnownGood, log, predecessorGone, watch } = this.#parts;
    log('stopping');
    this.#resolveLeaving();
    if (!this.#isHandedOver) {
      this.#successor?.kill();
      await this.#restarting?.catch(() => {});
    }
    if (!this.#isHandedOver) notifySystemd(log, { STOPPING: 1 });
    const untilMs = performance.now() + config.server.drain_seconds * 1_000;
    watch.stop();
    await supervisor.stop(this.#isHandedOver ? 'retire' : 'drain');
    lastKnownGood.close();
    await Promise.race([
      predecessorGone,
      new Promise((resolve) => setTimeout(resolve, untilMs - performance.now()).unref()),
    ]);
    const { admin, control, burstFile } = this.#parts;
    // Before the ledger is released: a server that waits for the ledger must find the control socket free.
    control?.close();
    await ledgerWriter.close(Math.max(LAST_COMMIT_MS, untilMs - performance.now()));
    admin?.server.close();
    admin?.server.closeAllConnections();
    if (burstFile !== undefined) rmSync(burstFile, { force: true });
    log('stopped');
    this.#successor?.release();
    this.#resolveStopped();
  }
}
