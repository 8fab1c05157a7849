/**
 * The running server's side of a restart: it starts the next server, hands things over one by one, and takes all of them back where the
 * other one fails.
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

/** How a server is started: a path that an upgrade leads to the new program, and the arguments of this one. */
export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
}

/** What a running server hands over, and how it is at that moment. */
export interface HandOver {
  readonly program: ServerProgram;
  readonly supervisor: Supervisor;
  readonly ledgerWriter: LedgerWriter;
  readonly ledgerFile: string;
  readonly socket: string;
  readonly begin: Omit<BeginMessage, 'type'>;
  readonly admin: { readonly server: Server; readonly host: string; readonly port: number } | undefined;
  /** Whether it answers lookups itself: then its successor must, too. */
  readonly isReady: () => Promise<boolean>;
}

/** How long the ledger writer may take for its last commit. */
const WRITER_LIMIT_MS = 10_000;
/** How long the successor may take for everything between `take` and `taken`: its ledger writer may have to play in a log. */
const TAKE_TIMEOUT_MS = 30_000;
/** All new connections go to the successor for so long before the old sockets are closed: also a slow handshake is over then. */
const PROBATION_MS = 1_000;
const CONFIRM_TIMEOUT_MS = 5_000;
/** Longer than the workers of a killed successor need to see that it is gone and to stop listening. */
const TAKE_BACK_MS = 1_000;

const failed = (why: string): PagegateError => new PagegateError('restart_failed', why);

/** The process that is to follow this one. */
export class Successor {
  readonly #handOver: HandOver;
  readonly #child: ChildProcess;
  /** How it has ended: the predicate of a sentence; undefined while it runs. */
  #ending: string | undefined;
  readonly #received: FromSuccessor[] = [];
  /** Resolved, and replaced by another one, when the new server sends something. */
  #news = Promise.withResolvers<void>();
  /** Whether new connections are kept from its workers, or given to them. */
  #isSteered = false;
  /** Whether the ledger writer's place was passed on. */
  #hasTaken = false;
  /** Whether it goes on with the table of the burst limit. */
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
   * Hands everything over to it.
   *
   * @param waitMs for the successor to become ready.
   * @throws PagegateError restart_failed, restart_needs_stop; then it is gone, and this server has everything again.
   */
  async takeOver(waitMs: number): Promise<RestartReply> {
    try {
      const deadline = performance.now() + waitMs;
      const { supervisor, ledgerWriter, admin } = this.#handOver;
      const hello = await this.#next('hello', deadline);
      this.#check(hello);
      // Until it is to get them, its sockets get no connections: they would be lost with it.
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

  /** Tells it that there is no way back, and lets go of it. */
  commit(): void {
    this.#send({ type: 'committed' });
    this.#child.unref();
  }

  /** Lets go of the last connection to it, when this server has answered what was open. */
  release(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** @throws PagegateError restart_needs_stop */
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

  /** A server that answers lookups is not replaced by one that does not. @throws PagegateError restart_failed */
  async #requireAsWell({ ready, reasons }: SuccessorReadiness): Promise<void> {
    if (!ready && (await this.#handOver.isReady())) throw failed(`It is not ready: ${reasons.join('; ')}.`);
  }

  /** Our sockets began to listen first. */
  async #keepConnections(): Promise<void> {
    const { supervisor } = this.#handOver;
    await supervisor.ask('steer', { first: 0, count: supervisor.pids.length });
  }

  /** The successor is given up: its connections come back to this server, and so does what it had taken. */
  async #takeBack(): Promise<void> {
    const { supervisor, ledgerWriter } = this.#handOver;
    // It may have taken the connections, too. What it got of them it answers before it is ended.
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

  /** Waits for a message. @throws PagegateError restart_failed when it fails, ends, or takes longer */
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
    // One that is gone is noticed by its end.
    if (this.#child.connected) this.#child.send(message, handle, {}, () => {});
  }
}
