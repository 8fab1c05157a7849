/** A server that answers: asked, restarted, stopped. */
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

/** What a server consists of. */
export interface ServerParts extends ObservedServer {
  readonly log: Log;
  /** How the server that follows this one is started; undefined where none can be. */
  readonly program: ServerProgram | undefined;
  /** Resolves when no other server's workers charge in the shared counters any more. */
  readonly predecessorGone: Promise<void>;
  /** Resolves when no other server has its console, say, where ours should be. */
  readonly inPlace: Promise<void>;
  burstFile: string | undefined;
  admin: { readonly server: Server; readonly port: number } | undefined;
  control: ControlSocket | undefined;
}

/** The time that the ledger writer is given for its last commit when workers have taken all of the drain time, in milliseconds. */
const LAST_COMMIT_MS = 2_000;
/** How long a restart waits for the new server to become ready, unless told otherwise. */
const RESTART_WAIT_SECONDS = 120;
const RESTART_WAIT_MAX_SECONDS = 3_600;
/** The process that ends a container with its own end. */
const FIRST_PID = 1;
/** An answer on the control socket leaves before the sockets close. */
const ANSWER_MS = 10;

/** A server as a whole: it answers, is asked and commanded, and stops or gives way to another one. */
export class RunningServer {
  readonly port: number;
  /** Resolves when the server has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  /** Resolves when it has given way to another server, or begins to stop. */
  readonly leaving: Promise<void>;
  readonly #parts: ServerParts;
  readonly #resolveStopped: () => void;
  readonly #resolveLeaving: () => void;
  #stopping: Promise<void> | undefined;
  #successor: Successor | undefined;
  /** Settles when a restart that is under way has come to its end. */
  #restarting: Promise<unknown> | undefined;
  #isHandedOver = false;

  /** @param parts what `startServer` started, in this order; `stop` ends them in the other. */
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

  /** Resolves when no other server stands where this one does: at once, but for one that takes over. */
  get inPlace(): Promise<void> {
    return this.#parts.inPlace;
  }

  /** Undefined without an admin listener. */
  get adminUrl(): string | undefined {
    const { admin, config } = this.#parts;
    return admin === undefined ? undefined : adminUrl(config, admin.port);
  }

  /** Process ids of the workers. */
  get pids(): readonly number[] {
    return this.#parts.supervisor.pids;
  }

  /** Reloads index, policy and certificate in every worker; resolves with what each reports. */
  async reload(): Promise<ReloadReply> {
    return reloadAll(this.#parts);
  }

  /** Whether lookups are answered: by this server, or by the one that it has given way to. */
  async readiness(): Promise<Readiness> {
    // A connection that was accepted before may ask after the workers have begun to stop.
    return this.#isHandedOver ? { ready: true, reasons: [], warnings: [] } : readiness(this.#parts);
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

  /** Listens for commands. */
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
   * Starts the server that follows this one and hands everything over to it; {@link stop} this one then, which answers what is open.
   *
   * @throws PagegateError restart_busy, restart_failed, restart_needs_stop; then this server goes on as before.
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
      // From now on only the successor says how the server is.
      admin?.server.close();
      if (successor.keepsBurstFile) this.#parts.burstFile = undefined;
      log('handed_over', { pid: reply.pid, version: reply.version });
      return reply;
    } catch (error) {
      this.#successor = undefined;
      log('restart_failed', failureFields(error));
      // It may have taken our socket.
      this.#parts.control?.close();
      await this.listenControl(true);
      throw error;
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
    // Before the ledger is given up: the next server that waits for it must find the socket free.
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
