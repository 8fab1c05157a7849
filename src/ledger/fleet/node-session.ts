/**
 * A node's session with its fleet's database. It runs in the ledger writer: requests blocks of lookups from PostgreSQL, which the reserver
 * reserves and the workers spend; reports what was spent; keeps the node's copy of accounts and keys up to date.
 *
 * Only one message is in flight at a time. It contains everything that may have changed, so that nothing depends on an answer that was lost.
 */
import { randomBytes } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { messageOf, PagegateError } from '../../errors.ts';
import { PROGRAM_VERSION } from '../../version.ts';
import { dayOf } from '../cycle.ts';
import type { Engine } from '../postgres/engine.ts';
import { prepareSchema } from '../postgres/schema.ts';
import type { SyncItem, SyncRefusal, SyncReply, SyncRequest } from '../postgres/sync.ts';
import type { AccountStanding } from '../writer/reservations.ts';
import type { Reserver } from '../writer/reserver.ts';
import type { FleetCopy } from './account-copy.ts';
import type { HeldGrants } from './held-grants.ts';
import { SyncItems } from './sync-items.ts';

/** How often a node reports if nothing happens; well before PostgreSQL considers its session gone. */
const SYNC_MS = 1_000;
/** How soon it asks again while requests wait. */
const URGENT_MS = 50;
/** Delay after a failure; doubles with each failure in a row. */
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;
/** A worker's request is answered after this time at the latest, whether or not anything was granted. */
const ANSWER_MS = 250;
/** If PostgreSQL answers `busy` for this long, another server uses this node's identity: this one runs on a copy of its folder. */
const BUSY_MS = 10_000;
/** Fits into a 64-bit float without loss. */
const SESSION_BYTES = 6;
/**
 * Number of accounts per message. Even a slow engine must handle them, with all their days, well before the statement times out. A node whose
 * first message always timed out could never join.
 */
const BATCH = 250;

export interface NodeSessionOptions {
  readonly copy: FleetCopy;
  readonly reserver: Reserver;
  readonly connect: () => Promise<Engine>;
  /** The node's name for operators. */
  readonly nodeName: string;
  readonly maxStalenessSeconds: number;
  /** The symbolic link to the current generation. */
  readonly currentLink?: string;
  /** Called when the node's state is no longer its own, so that it must start over. */
  readonly onFenced: (error: PagegateError) => void;
}

/** The message for each refusal. */
const REFUSED: Readonly<Record<SyncRefusal, string>> = {
  busy: 'This node’s earlier session was heard moments ago; it is waited for.',
  copied:
    'Another server has started from a copy of this node’s folder `fleet`; this one starts over as a node of its own.',
  retired: 'This node was retired by `pagegate fleet retire`; it starts over as another node.',
  late: 'A message of this node came late; it is sent again.',
  moved: 'The fleet’s ledger was moved elsewhere; correct ledger.url.',
};

/** Exchanges messages with PostgreSQL until it is closed. */
export class NodeSession {
  readonly #options: NodeSessionOptions;
  readonly #grants: HeldGrants;
  readonly #items: SyncItems;
  readonly #session = randomBytes(SESSION_BYTES).readUIntBE(0, SESSION_BYTES);
  #engine: Engine | undefined;
  #hasJoined = false;
  #seq = 0;
  /** The next message must report everything, not only changes. */
  #isFull = true;
  #retryMs = RETRY_FIRST_MS;
  #busySinceMs: number | undefined;
  /** No further round begins. */
  #isClosed = false;
  /** No connection is used or opened any more. */
  #isOver = false;
  /** The next round begins without a pause. */
  #isAwake = false;
  #wakeUp: (() => void) | undefined;
  /** Called at the end of each round, to answer workers. */
  #answers: (() => void)[] = [];
  #loop: Promise<void> | undefined;

  constructor(grants: HeldGrants, options: NodeSessionOptions) {
    this.#grants = grants;
    this.#options = options;
    this.#items = new SyncItems(grants, options.reserver);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Reserves for accounts that have run low. Resolves when the workers should try again. */
  async reserve(accountIds: ReadonlySet<number>): Promise<void> {
    const { reserver } = this.#options;
    reserver.reserve(accountIds);
    let isEmpty = false;
    for (const standing of reserver.standing(accountIds)) {
      this.#items.requestIfLow(standing);
      isEmpty ||= standing.reserved <= standing.used;
    }
    if (this.#items.hasRequests) this.wake();
    if (!isEmpty) return;
    await new Promise<void>((resolve) => {
      this.#answers.push(resolve);
      setTimeout(resolve, ANSWER_MS).unref();
    });
  }

  /** Sends the next message now, because something has changed. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp?.();
  }

  /**
   * Ends the session, so that the next one may begin at once. Reconnects for that if the connection was lost.
   *
   * @param options.standing the final usage; everything else is given back. If undefined, the node keeps what it holds.
   * @param options.limitMs how long that may take. What could not be reported counts as used until the next session reports it.
   */
  async leave({ standing, limitMs }: { standing?: readonly AccountStanding[]; limitMs: number }): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, limitMs).unref());
    await Promise.race([this.#goodbye(standing), late]);
    this.#isOver = true;
    await Promise.race([this.#engine?.close(), late]);
    this.#options.copy.close();
  }

  /** Ends without a message, like a process that is killed. */
  async kill(): Promise<void> {
    this.#isOver = true;
    const ended = this.#end();
    await this.#engine?.close();
    await ended;
    this.#options.copy.close();
  }

  /** Starts no further round; resolves when the present one has ended. */
  async #end(): Promise<void> {
    this.#isClosed = true;
    this.wake();
    await this.#loop;
  }

  /** Reports the end of this session to the engine. Repeats that until the engine has answered. */
  async #goodbye(standing: readonly AccountStanding[] | undefined): Promise<void> {
    await this.#end();
    while (!this.#isOver) {
      const isDone = await this.#sayGoodbye(standing).catch(() => false);
      if (isDone) return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_FIRST_MS).unref());
    }
  }

  /** @returns whether there is nothing more to report. */
  async #sayGoodbye(standing: readonly AccountStanding[] | undefined): Promise<boolean> {
    const engine = await this.#connected();
    const items = standing === undefined ? this.#items.collect(this.#isFull) : this.#items.last(standing);
    const flags = { leaves: true, isFull: standing !== undefined, hasAllDays: false };
    const { refused } = await this.#send(engine, items, flags);
    // `busy` and `late` are temporary: the engine considers an earlier session alive for a moment. After any other refusal this session has
    // ended. That includes an earlier goodbye whose answer was lost.
    return refused !== 'busy' && refused !== 'late';
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      let pauseMs = SYNC_MS;
      try {
        await this.#round();
        this.#retryMs = RETRY_FIRST_MS;
        if (this.#items.hasRequests) pauseMs = URGENT_MS;
      } catch (error) {
        this.#grants.problem = messageOf(error);
        this.#isFull = true;
        pauseMs = this.#retryMs;
        this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS);
        this.#isAwake = false;
      }
      for (const resolve of this.#answers.splice(0)) resolve();
      await this.#sleep(pauseMs);
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (!this.#isAwake && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wakeUp = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wakeUp = undefined;
    this.#isAwake = false;
  }

  /** Reports to the engine, and applies its answers and what is new in its accounts. */
  async #round(): Promise<void> {
    const { copy, reserver } = this.#options;
    const engine = await this.#connected();
    const isFull = this.#isFull;
    const items = this.#items.collect(isFull);
    let hasLostCommits = false;
    // Only the last of several messages states that everything was reported.
    for (let at = 0; at === 0 || at < items.length; at += BATCH) {
      const isLast = at + BATCH >= items.length;
      const sent = { ms: Date.now(), atMs: performance.now() };
      const flags = { leaves: false, isFull: isFull && isLast, hasAllDays: isFull };
      const batch = items.slice(at, at + BATCH);
      const reply = await this.#send(engine, batch, flags);
      if (reply.refused !== undefined) return this.#refused(reply.refused);
      if (this.#items.apply(reply)) this.#isAwake = true;
      hasLostCommits ||= reply.history !== copy.history;
      if (reply.revision !== copy.revision || reply.history !== copy.history) {
        const changed = await copy.follow(engine);
        reserver.publishChanges();
        this.#items.changed(changed);
        this.#isAwake = true;
      }
      // Only after the copy is up to date: before that, a revoked key would still be accepted.
      this.#noteContact(reply, sent);
      reserver.reserve(batch.map(({ id }) => id));
    }
    // After a loss of commits, report everything once more: the engine grants nothing until all nodes have done so.
    this.#isFull = hasLostCommits;
    this.#busySinceMs = undefined;
  }

  async #connected(): Promise<Engine> {
    if (this.#engine?.isOpen === true) return this.#engine;
    this.#isFull = true;
    const engine = await this.#options.connect();
    try {
      this.#options.copy.refuseOther(await prepareSchema(engine, { isRunning: this.#hasJoined }), engine.name);
      this.#hasJoined = true;
      await engine.listen(() => this.wake());
      if (this.#isOver) throw new PagegateError('ledger_unavailable', 'The session has ended.');
    } catch (error) {
      await engine.close();
      throw error;
    }
    this.#engine = engine;
    return engine;
  }

  /** Sends one message and returns the engine's answer. */
  async #send(
    engine: Engine,
    accounts: readonly SyncItem[],
    { leaves, isFull, hasAllDays }: { leaves: boolean; isFull: boolean; hasAllDays: boolean },
  ): Promise<SyncReply> {
    const { copy, nodeName, maxStalenessSeconds } = this.#options;
    this.#seq += 1;
    const today = dayOf(Math.floor(this.#grants.now() / 1000));
    const request: SyncRequest = {
      node: copy.nodeId,
      name: nodeName,
      incarnation: copy.incarnation,
      session: String(this.#session),
      previous: String(this.#grants.session),
      seq: this.#seq,
      full: isFull,
      leaves,
      revision: copy.revision,
      program: PROGRAM_VERSION,
      generation: this.#generation(),
      max_staleness: maxStalenessSeconds,
      accounts,
      days: copy.days(
        accounts.map(({ id }) => id),
        today,
        hasAllDays,
      ),
    };
    const sentMs = Date.now();
    const [row] = await engine.query<{ reply: SyncReply }>('SELECT sync($1::jsonb) AS reply', [
      JSON.stringify(request),
    ]);
    const reply = row!.reply;
    if (reply.refused !== undefined) return reply;
    this.#items.markReported(accounts);
    this.#grants.setClock(reply.now * 1_000, sentMs, Date.now());
    return reply;
  }

  /** Records a successful exchange. The answer was true at the latest when the message was sent, so that moment counts. */
  #noteContact({ learning }: SyncReply, sent: { readonly ms: number; readonly atMs: number }): void {
    this.#grants.heardMs = sent.ms;
    this.#grants.heardAtMs = sent.atMs;
    this.#grants.isLearning = learning;
    this.#grants.session = this.#session;
    this.#grants.problem = '';
  }

  #refused(refusal: SyncRefusal): void {
    const nowMs = performance.now();
    let isLost = refusal === 'copied' || refusal === 'retired';
    if (refusal === 'busy') {
      this.#busySinceMs ??= nowMs;
      isLost = nowMs - this.#busySinceMs > BUSY_MS;
    }
    // An earlier session that stays alive belongs to another server.
    const error = new PagegateError('ledger_unavailable', REFUSED[isLost && refusal === 'busy' ? 'copied' : refusal]);
    if (isLost) {
      this.#isClosed = true;
      this.#options.onFenced(error);
    }
    throw error;
  }

  #generation(): string {
    const { currentLink } = this.#options;
    try {
      return currentLink === undefined ? '' : basename(readlinkSync(currentLink));
    } catch {
      return '';
    }
  }
}
