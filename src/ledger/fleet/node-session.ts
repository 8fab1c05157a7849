/**
 * A node's part in its fleet. Runs in the ledger writer: asks PostgreSQL for blocks of lookups, which the reserver reserves and the workers
 * spend; reports what was spent; keeps the node's copy of accounts and keys.
 *
 * One message is under way at a time. It tells all that may have changed, so that nothing depends on an answer that was lost.
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

/** How often a node reports when nothing happens; well before PostgreSQL takes its session for gone. */
const SYNC_MS = 1_000;
/** How soon it asks again while requests wait. */
const URGENT_MS = 50;
/** At least so long after a failure; doubled with each. */
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;
/** A worker's question is answered after this at the latest, whether or not something was granted. */
const ANSWER_MS = 250;
/** Where PostgreSQL says `busy` for so long, another server uses this node's identity: this one runs on a copy of its folder. */
const BUSY_MS = 10_000;
/** Less than a 64-bit float has. */
const SESSION_BYTES = 6;
/**
 * Accounts in one message. With all their days it must be done well before a statement is given up, also by a slow engine: a node whose first
 * message never is would be cut off for good.
 */
const BATCH = 250;

export interface NodeSessionOptions {
  readonly copy: FleetCopy;
  readonly reserver: Reserver;
  readonly connect: () => Promise<Engine>;
  /** What people call this node. */
  readonly nodeName: string;
  readonly maxStalenessSeconds: number;
  /** The link to the generation that is served. */
  readonly currentLink?: string;
  /** The node's state is not its own any more: it must start over. */
  readonly onFenced: (error: PagegateError) => void;
}

/** What a refusal means for this node. */
const REFUSED: Readonly<Record<SyncRefusal, string>> = {
  busy: 'This node’s earlier session was heard moments ago; it is waited for.',
  copied:
    'Another server has started from a copy of this node’s folder `fleet`; this one starts over as a node of its own.',
  retired: 'This node was retired by `pagegate fleet retire`; it starts over as another node.',
  late: 'A message of this node came late; it is sent again.',
  moved: 'The fleet’s ledger was moved elsewhere; correct ledger.url.',
};

/** Talks to PostgreSQL until it is closed. */
export class NodeSession {
  readonly #options: NodeSessionOptions;
  readonly #grants: HeldGrants;
  readonly #items: SyncItems;
  readonly #session = randomBytes(SESSION_BYTES).readUIntBE(0, SESSION_BYTES);
  #engine: Engine | undefined;
  #hasJoined = false;
  #seq = 0;
  #isFull = true;
  #retryMs = RETRY_FIRST_MS;
  #busySinceMs: number | undefined;
  /** No further round begins. */
  #isClosed = false;
  /** No connection is used or made any more. */
  #isOver = false;
  #isAwake = false;
  #wakeUp: (() => void) | undefined;
  #asked: (() => void)[] = [];
  #loop: Promise<void> | undefined;

  constructor(grants: HeldGrants, options: NodeSessionOptions) {
    this.#grants = grants;
    this.#options = options;
    this.#items = new SyncItems(grants, options.reserver);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Reserves for accounts that have run low. Resolves when workers should look again. */
  async reserve(accountIds: ReadonlySet<number>): Promise<void> {
    const { reserver } = this.#options;
    reserver.reserve(accountIds);
    let isEmpty = false;
    for (const standing of reserver.standing(accountIds)) {
      this.#items.want(standing);
      isEmpty ||= standing.reserved <= standing.used;
    }
    if (this.#items.hasWanted) this.wake();
    if (!isEmpty) return;
    await new Promise<void>((resolve) => {
      this.#asked.push(resolve);
      setTimeout(resolve, ANSWER_MS).unref();
    });
  }

  /** Something has changed: the next message is sent now. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp?.();
  }

  /**
   * Ends the session, so that the next one may begin at once. A connection that was cut is made again for it.
   *
   * @param options.standing what was used in the end, where all else is given back; what is held stays the node's where it is not said.
   * @param options.limitMs how long that may take. What could not be said counts as used, until the next session says it.
   */
  async leave({ standing, limitMs }: { standing?: readonly AccountStanding[]; limitMs: number }): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, limitMs).unref());
    await Promise.race([this.#goodbye(standing), late]);
    this.#isOver = true;
    await Promise.race([this.#engine?.close(), late]);
    this.#options.copy.close();
  }

  /** Ends without a word, as a process that is killed. */
  async kill(): Promise<void> {
    this.#isOver = true;
    const ended = this.#end();
    await this.#engine?.close();
    await ended;
    this.#options.copy.close();
  }

  /** Resolves when nothing is under way any more. */
  async #end(): Promise<void> {
    this.#isClosed = true;
    this.wake();
    await this.#loop;
  }

  /** Tells the engine that this session ends, again and again until the engine has heard it. */
  async #goodbye(standing: readonly AccountStanding[] | undefined): Promise<void> {
    await this.#end();
    while (!this.#isOver) {
      const isHeard = await this.#sayGoodbye(standing).catch(() => false);
      if (isHeard) return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_FIRST_MS).unref());
    }
  }

  /** @returns whether there is nothing more to say. */
  async #sayGoodbye(standing: readonly AccountStanding[] | undefined): Promise<boolean> {
    const engine = await this.#connected();
    const items = standing === undefined ? this.#items.collect(this.#isFull) : this.#items.last(standing);
    const told = { leaves: true, isFull: standing !== undefined, hasAllDays: false };
    const { refused } = await this.#tell(engine, items, told);
    // An earlier session is taken to live for a moment. What else is refused is not this session's any more: a goodbye whose answer was
    // lost has ended it, too.
    return refused !== 'busy' && refused !== 'late';
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      let pauseMs = SYNC_MS;
      try {
        await this.#once();
        this.#retryMs = RETRY_FIRST_MS;
        if (this.#items.hasWanted) pauseMs = URGENT_MS;
      } catch (error) {
        this.#grants.problem = messageOf(error);
        this.#isFull = true;
        pauseMs = this.#retryMs;
        this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS);
        this.#isAwake = false;
      }
      for (const resolve of this.#asked.splice(0)) resolve();
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

  async #once(): Promise<void> {
    const { copy, reserver } = this.#options;
    const engine = await this.#connected();
    const isFull = this.#isFull;
    const items = this.#items.collect(isFull);
    let isForgotten = false;
    // Only the last message of several says that all was told.
    for (let at = 0; at === 0 || at < items.length; at += BATCH) {
      const isLast = at + BATCH >= items.length;
      const sent = { ms: Date.now(), atMs: performance.now() };
      const told = { leaves: false, isFull: isFull && isLast, hasAllDays: isFull };
      const batch = items.slice(at, at + BATCH);
      const reply = await this.#tell(engine, batch, told);
      if (reply.refused !== undefined) return this.#refused(reply.refused);
      if (this.#items.take(reply)) this.#isAwake = true;
      isForgotten ||= reply.history !== copy.history;
      if (reply.revision !== copy.revision || reply.history !== copy.history) {
        const changed = await copy.follow(engine);
        reserver.publishChanges();
        this.#items.changed(changed);
        this.#isAwake = true;
      }
      // Only now: until the copy has what is newer, a revoked key would open.
      this.#hear(reply, sent);
      reserver.reserve(batch.map(({ id }) => id));
    }
    // What was told before the loss was noticed is told once more: the engine grants nothing until all nodes have done so.
    this.#isFull = isForgotten;
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

  async #tell(
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
    this.#items.told(accounts);
    this.#grants.setClock(reply.now * 1_000, sentMs, Date.now());
    return reply;
  }

  /** What the engine said was true when it was asked. */
  #hear({ learning }: SyncReply, sent: { readonly ms: number; readonly atMs: number }): void {
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
    // A session that stays alive is another server's.
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
