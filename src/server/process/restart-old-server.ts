/**
 * The running server's side of a restart: it starts the successor and hands everything over step by step. If the successor fails, it takes
 * everything back.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { PagegateError } from '../../errors.ts';
import { LEDGER_VERSIONS, type LedgerWriter } from '../../ledger/writer.ts';
import { PROGRAM_VERSION } from '../../version.ts';
import type { RestartReply } from '../status.ts';
import {
  type BeginMessage,
  type FromPredecessor,
  type FromSuccessor,
  HAND_OVER_PROTOCOL,
  SUCCESSOR_VARIABLE,
  type SuccessorReadiness,
  type TakeMessage,
} from './restart-messages.ts';
import type { Supervisor } from './supervisor.ts';

/** The command that starts a server: a path that leads to the new program after an upgrade, and the arguments of this server. */
export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
}

/** The parts that a running server hands over, and its readiness. */
export interface HandOver {
  readonly program: ServerProgram;
  readonly supervisor: Supervisor;
  readonly ledgerWriter: LedgerWriter;
  readonly ledgerFile: string;
  readonly socket: string;
  readonly begin: Omit<BeginMessage, 'type'>;
  readonly admin: { readonly server: Server; readonly host: string; readonly port: number } | undefined;
  /** Whether this server answers lookups. If so, its successor must, too. */
  readonly isReady: () => Promise<boolean>;
}

/** Time limit for the ledger writer's last commit. */
const WRITER_LIMIT_MS = 10_000;
/** Time limit from `take` to `taken`: the successor's ledger writer may have to replay a log. */
const TAKE_TIMEOUT_MS = 30_000;
/** How long all new connections go to the successor before the old sockets are closed. Even a slow handshake is complete by then. */
const PROBATION_MS = 1_000;
const CONFIRM_TIMEOUT_MS = 5_000;
/** Longer than the workers of a killed successor need to notice its end and to stop listening. */
const TAKE_BACK_MS = 1_000;

const failed = (why: string): PagegateError => new PagegateError('restart_failed', why);

/** The server process that takes over from this one. */
export class Successor {
  readonly #handOver: HandOver;
  readonly #child: ChildProcess;
  /** How the process ended, as the predicate of a sentence; undefined while it runs. */
  #ending: string | undefined;
  readonly #received: FromSuccessor[] = [];
  /** Resolved, and replaced by a new promise, when a message arrives or the process ends. */
  #news = Promise.withResolvers<void>();
  /** Whether new connections of the port are steered, away from its workers or to them. */
  #isSteered = false;
  /** Whether the hand-over of the ledger writer has begun. */
  #hasTaken = false;
  /** Whether the successor continues to use this server's burst file. */
  keepsBurstFile = false;

  constructor(handOver: HandOver) {
    this.#handOver = handOver;
    const { command, args } = handOver.program;
    this.#child = spawn(command, args, {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, [SUCCESSOR_VARIABLE]: '1' },
    });
    const end = (how: string): void => {
      this.#ending ??= how;
      this.#heard();
    };
    this.#child.once('error', (error) => end(`cannot be started: ${error.message}`));
    this.#child.once('exit', (code, signal) =>
      end(`ended with ${signal === null ? `code ${code}` : `signal ${signal}`}`),
    );
    this.#child.on('message', (message: FromSuccessor) => {
      this.#received.push(message);
      this.#heard();
    });
  }

  /**
   * Hands everything over to the successor.
   *
   * @param waitMs time limit for the successor to become ready.
   * @throws PagegateError restart_failed, restart_needs_stop. The successor has then ended, and this server has taken everything back.
   */
  async takeOver(waitMs: number): Promise<RestartReply> {
    try {
      const deadline = performance.now() + waitMs;
      const { supervisor, ledgerWriter, admin } = this.#handOver;
      const hello = await this.#next('hello', deadline);
      this.#check(hello);
      // Its sockets get no connections until it takes over: if it failed, these would be lost.
      await this.#keepConnections();
      this.#isSteered = true;
      this.#send({ type: 'begin', ...this.#handOver.begin });
      const ready = await this.#next('ready', deadline);
      this.keepsBurstFile = ready.keepsBurstFile;
      await this.#requireAsWell(ready);
      this.#hasTaken = true;
      await ledgerWriter.handOver(WRITER_LIMIT_MS);
      const take: TakeMessage = {
        type: 'take',
        listening: supervisor.pids.length,
        admin: admin === undefined ? null : { host: admin.host, port: admin.port },
      };
      this.#send(take, admin?.server);
      await this.#next('taken', performance.now() + TAKE_TIMEOUT_MS);
      await sleep(PROBATION_MS);
      this.#send({ type: 'confirm' });
      await this.#requireAsWell(await this.#next('confirmed', performance.now() + CONFIRM_TIMEOUT_MS));
      return { version: hello.version, pid: hello.pid };
    } catch (error) {
      await this.#takeBack();
      throw error;
    }
  }

  /** Completes the hand-over: this server can no longer take back the service. */
  commit(): void {
    this.#send({ type: 'committed' });
    this.#child.unref();
  }

  /** Closes the channel to the successor, when this server has answered its open requests. */
  release(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Checks that the successor can share ledger, control socket and counters. @throws PagegateError restart_needs_stop */
  #check({ protocol, version, versions, ledgerFile, socket }: Extract<FromSuccessor, { type: 'hello' }>): void {
    const refuse = (why: string): never => {
      throw new PagegateError('restart_needs_stop', why, { from: PROGRAM_VERSION, to: version });
    };
    if (protocol !== HAND_OVER_PROTOCOL)
      refuse(
        `pagegate ${version} hands over by protocol ${protocol}, this one (${PROGRAM_VERSION}) by ${HAND_OVER_PROTOCOL}.`,
      );
    if (ledgerFile !== this.#handOver.ledgerFile)
      refuse(`state_dir has changed: the ledger is ${this.#handOver.ledgerFile}, it would be ${ledgerFile}.`);
    if (socket !== this.#handOver.socket)
      refuse(`admin.socket has changed: it is ${this.#handOver.socket}, it would be ${socket}.`);
    if (versions.ledger > LEDGER_VERSIONS.ledger) {
      const copy = `${ledgerFile}.version-${LEDGER_VERSIONS.ledger}`;
      refuse(
        `pagegate ${version} writes version ${versions.ledger} of the ledger, this one (${PROGRAM_VERSION}) version ${LEDGER_VERSIONS.ledger}. ` +
          `Its start copies the ledger to ${copy} before it migrates. The way back is that copy: ` +
          'what was used, paid, issued and revoked after the upgrade is not in it.',
      );
    }
    if (versions.ledger < LEDGER_VERSIONS.ledger) {
      const copy = `${ledgerFile}.version-${versions.ledger}`;
      refuse(
        `pagegate ${version} knows version ${versions.ledger} of the ledger, which is of version ${LEDGER_VERSIONS.ledger} now. ` +
          `The way back is the copy that the upgrade took, ${copy}, or a backup of that version, restored with pagegate ${version} while the ` +
          'server is stopped: what was used, paid, issued and revoked since is not in it.',
      );
    }
    if (versions.counters !== LEDGER_VERSIONS.counters)
      refuse(
        `pagegate ${version} has version ${versions.counters} of the shared counters, this one (${PROGRAM_VERSION}) ` +
          `version ${LEDGER_VERSIONS.counters}. An orderly stop commits what they hold; nothing is lost.`,
      );
  }

  /** Checks that the successor is ready if this server is. @throws PagegateError restart_failed */
  async #requireAsWell({ ready, reasons }: SuccessorReadiness): Promise<void> {
    if (!ready && (await this.#handOver.isReady())) throw failed(`It is not ready: ${reasons.join('; ')}.`);
  }

  /** Steers all new connections to this server's sockets. They began to listen first, so their positions start at 0. */
  async #keepConnections(): Promise<void> {
    const { supervisor } = this.#handOver;
    await supervisor.ask('steer', { first: 0, count: supervisor.pids.length });
  }

  /** Ends the successor. This server takes back new connections and the ledger. */
  async #takeBack(): Promise<void> {
    const { supervisor, ledgerWriter } = this.#handOver;
    // It may already get all new connections. Steer them back, and let it answer those it got before it is killed.
    if (this.#hasTaken) await this.#keepConnections();
    if (this.#hasTaken && this.#ending === undefined) await sleep(PROBATION_MS);
    this.kill();
    await this.#end();
    this.release();
    if (this.#hasTaken) ledgerWriter.resume();
    if (!this.#isSteered) return;
    await sleep(TAKE_BACK_MS);
    await supervisor.ask('steer');
  }

  /** Waits for a message of a type. @throws PagegateError restart_failed if the successor fails, ends, or misses the deadline */
  async #next<T extends FromSuccessor['type']>(
    type: T,
    deadline: number,
  ): Promise<Extract<FromSuccessor, { type: T }>> {
    for (;;) {
      const message = this.#received.shift();
      if (message?.type === 'failed') throw failed(message.message);
      if (message?.type === type) return message as Extract<FromSuccessor, { type: T }>;
      if (message !== undefined) continue;
      if (this.#ending !== undefined) throw failed(`It ${this.#ending} before it was done; its log says why.`);
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw failed(`It did not say "${type}" in time, and was killed.`);
      const abort = new AbortController();
      const late = sleep(leftMs, undefined, { signal: abort.signal }).catch(() => {});
      await Promise.race([this.#news.promise, late]);
      abort.abort();
    }
  }

  async #end(): Promise<void> {
    while (this.#ending === undefined) await this.#news.promise;
  }

  #heard(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }

  #send(message: FromPredecessor, handle?: Server): void {
    // If the successor has ended, its `exit` event reports that.
    if (this.#child.connected) this.#child.send(message, handle, {}, () => {});
  }
}
