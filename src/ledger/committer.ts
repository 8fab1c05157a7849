/** Carries the shared counters into SQLite: every account that was charged since, of all workers, in one transaction. */
import { statSync } from 'node:fs';
import { PagegateError } from '../errors.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from './clock.ts';
import { type Counters, openCounters, packWord, STATE, unpackWord } from './counters.ts';
import { cycleAt, dayOf } from './cycle.ts';
import { openDatabase } from './database.ts';
import type { Durability } from './meter.ts';
import { isMissingOrEmpty, lostLedger, refuseForeignLedger, setEarlierLogAside } from './presence.ts';
import { createReader, type Reader } from './records.ts';
import { type Database, failureReason } from './sqlite.ts';

/** Days that the usage by day goes back. */
export const USAGE_DAYS = 400;

/** How often the latest second seen is written down, in seconds. */
const SAVE_SEEN_SECONDS = 60;
/** More lookups than this since the last commit are no lookups but a damaged file. */
const ADDED_MAX = 1_000_000_000;

/** A meter's row as it is durable. */
interface Row {
  cycle: number;
  used: number;
  total: number;
  day: number;
  day_used: number;
}

export interface CommitterOptions {
  /** The SQLite file. */
  readonly file: string;
  readonly durability?: Durability;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** Milliseconds to wait for another writer before a commit fails. */
  readonly busyTimeoutMs?: number;
}

interface Opened {
  readonly database: Database;
  readonly read: Reader;
  readonly inode: bigint;
  readonly saveMeter: (accountId: number, row: Row) => void;
  readonly closeDay: (accountId: number, row: Row) => void;
  readonly begin: () => void;
  readonly end: () => void;
}

/** One for each ledger on a host. All methods are synchronous; a failure becomes the state `failed` with its reason. */
export class Committer {
  readonly counters: Counters;
  readonly #options: CommitterOptions;
  readonly #now: () => number;
  readonly #rows = new Map<number, Row>();
  #opened: Opened | undefined;
  #savedSeen = 0;

  /** @throws PagegateError when the counters cannot be created or mapped. */
  constructor(options: CommitterOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.counters = openCounters(options.file, { create: true });
  }

  /** Opens the ledger (again) and brings both sides to the greater of their counters. Reports `ready` or `failed`. */
  open(): boolean {
    const wasOpen = this.#opened !== undefined;
    this.#release();
    this.counters.heartbeatMs = this.#now();
    try {
      this.#opened = this.#connect();
      this.#reconcile(this.#opened);
      this.counters.nextEpoch();
      this.#measure(this.#opened);
    } catch (error) {
      this.#fail(error, this.counters.start());
      // A file that was not accepted is never written to; and workers must not go on reading the one that was there.
      this.#release();
      if (wasOpen) this.counters.nextEpoch();
      return false;
    }
    return this.commit(true);
  }

  close(): void {
    this.#release();
    this.counters.heartbeatMs = 0;
    this.counters.close();
  }

  /**
   * Makes every charge durable that happened before the call.
   *
   * @param everything looks at every account instead of those marked: finds what a killed worker did not mark any more.
   * @returns whether it is durable; a commit that failed is part of the next one.
   */
  commit(everything = false): boolean {
    const number = this.counters.start();
    const opened = this.#opened;
    if (opened === undefined) {
      // The reason for it stands already.
      this.counters.state = STATE.failed;
      this.counters.failed = number;
      return false;
    }
    const marked = this.counters.takeDirty();
    try {
      const seconds = this.#seconds();
      const problem = clockProblem(this.counters.lastSeenSeconds, seconds);
      if (problem !== undefined) throw new PagegateError('ledger_unavailable', problem);
      const accounts = everything ? opened.read.allAccounts().map(({ id }) => id) : marked;
      this.#write(opened, accounts, seconds);
    } catch (error) {
      for (const id of marked) this.counters.markDirty(id);
      this.#fail(error, number);
      return false;
    }
    this.counters.done = number;
    this.counters.state = STATE.ready;
    return true;
  }

  /** What is due a few times a second: changes of accounts, the clock, the file's identity, recovery after a failure. */
  tick(): void {
    this.counters.heartbeatMs = this.#now();
    if (this.#opened === undefined || this.#wasReplaced(this.#opened)) {
      this.open();
      return;
    }
    if (this.counters.state === STATE.failed) {
      if (!this.commit(true)) this.#release();
      return;
    }
    this.publishRevision();
    const seconds = this.#seconds();
    if (clockProblem(this.counters.lastSeenSeconds, seconds) !== undefined) {
      this.commit();
      return;
    }
    this.counters.lastSeenSeconds = Math.max(this.counters.lastSeenSeconds, seconds);
    if (seconds >= this.#savedSeen + SAVE_SEEN_SECONDS) this.commit();
    this.#measure(this.#opened);
  }

  /** Tells the workers when an account or a key has changed. */
  publishRevision(): void {
    try {
      const revision = this.#opened?.read.revision();
      if (revision !== undefined && revision !== this.counters.revision) this.counters.revision = revision;
    } catch (error) {
      this.#fail(error, this.counters.start());
    }
  }

  #connect(): Opened {
    const { file, durability } = this.#options;
    const { owner, served } = this.counters;
    // An empty ledger in the place of one that was served would refuse its keys and refund its usage.
    if (owner !== undefined && isMissingOrEmpty(file)) throw lostLedger(file, owner);
    setEarlierLogAside(file, served, this.#now());
    const database = openDatabase(file, {
      mustExist: owner !== undefined,
      synchronous: durability === 'relaxed' ? 'NORMAL' : 'FULL',
      busyTimeoutMs: this.#options.busyTimeoutMs ?? 1_000,
    });
    const save = database.prepare(
      'UPDATE meters SET cycle = ?, used = ?, total = ?, day = ?, day_used = ? WHERE account_id = ?',
    );
    const closeDay = database.prepare(
      'INSERT INTO usage_days VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET lookups = max(lookups, excluded.lookups)',
    );
    const begin = database.prepare('BEGIN IMMEDIATE');
    const end = database.prepare('COMMIT');
    return {
      database,
      begin: () => begin.run(),
      end: () => end.run(),
      read: createReader(database),
      inode: statSync(file, { bigint: true }).ino,
      saveMeter: (id, row) => save.run(row.cycle, row.used, row.total, row.day, row.day_used, id),
      closeDay: (id, row) => closeDay.run(id, row.day, row.day_used),
    };
  }

  #reconcile({ database, read }: Opened): void {
    const { counters } = this;
    const ledger = database
      .prepare<[], { ledger_id: string; last_seen_at: number }>('SELECT ledger_id, last_seen_at FROM ledger')
      .get()!;
    if (!counters.isFor(ledger.ledger_id)) {
      refuseForeignLedger(this.#options.file, ledger.ledger_id, counters.owner);
      counters.reset(ledger.ledger_id);
    }
    this.#rows.clear();
    for (const row of database.prepare<[], Row & { account_id: number }>('SELECT * FROM meters').all()) {
      const { cycle, used, total, day, day_used } = row;
      this.#rows.set(row.account_id, { cycle, used, total, day, day_used });
    }
    const seconds = this.#seconds();
    const latest = Math.max(seconds, ledger.last_seen_at) + SAVE_SEEN_SECONDS + CLOCK_LEAP_SECONDS;
    for (const account of read.allAccounts()) {
      const row = this.#rows.get(account.id);
      if (row === undefined) continue;
      const word = packWord(row.cycle, row.used);
      const { cycle } = unpackWord(counters.word(account.id));
      // The file may carry anything after a loss of power: what no worker can have written is not believed.
      const possible = account.anchor !== null && cycle <= cycleAt(account.anchor, latest);
      const added = counters.total(account.id) - row.total;
      if (possible && added < ADDED_MAX) counters.raise(account.id, word, row.total);
      else counters.replace(account.id, word, row.total);
    }
    counters.revision = read.revision();
    this.#savedSeen = ledger.last_seen_at;
    const saved = ledger.last_seen_at === 0 ? seconds : ledger.last_seen_at;
    // The counters may know of the minute that was not written down; what is further ahead nobody can have seen.
    const counted = counters.lastSeenSeconds;
    counters.lastSeenSeconds = counted > saved && counted <= saved + 2 * SAVE_SEEN_SECONDS ? counted : saved;
  }

  #row({ database }: { readonly database: Database }, accountId: number): Row {
    let row = this.#rows.get(accountId);
    if (row === undefined) {
      row = database
        .prepare<[number], Row>('SELECT cycle, used, total, day, day_used FROM meters WHERE account_id = ?')
        .get(accountId);
      if (row === undefined) throw new PagegateError('ledger_unavailable', `Account ${accountId} has no meter.`);
      this.#rows.set(accountId, row);
    }
    return row;
  }

  #write(opened: Opened, accounts: readonly number[], seconds: number): void {
    const today = dayOf(seconds);
    const isRecovering = this.counters.state !== STATE.ready;
    const isMinuteOver = seconds >= this.#savedSeen + SAVE_SEEN_SECONDS;
    const changed: [number, Row][] = [];
    for (const id of accounts) {
      const before = this.#row(opened, id);
      const after = this.#advance(before, id, today);
      if (after !== undefined) changed.push([id, after]);
    }
    if (changed.length === 0 && !isRecovering && !isMinuteOver) return;
    opened.begin();
    try {
      for (const [id, row] of changed) {
        const before = this.#rows.get(id)!;
        if (before.day !== row.day && before.day_used > 0) opened.closeDay(id, before);
        opened.saveMeter(id, row);
      }
      // Writing anything at all is also how a recovery is proved.
      if (isRecovering || isMinuteOver) this.#saveSeen(opened, seconds);
      opened.end();
    } catch (error) {
      if (opened.database.inTransaction) opened.database.exec('ROLLBACK');
      // Whether a failed commit reached the disk is not known: ask the file next time.
      this.#rows.clear();
      throw error;
    }
    for (const [id, row] of changed) this.#rows.set(id, row);
  }

  /** The row that a counter asks for; undefined when it has nothing new. Neither cycle, used nor total ever goes back. */
  #advance(before: Row, accountId: number, today: number): Row | undefined {
    const word = this.counters.word(accountId);
    const total = this.counters.total(accountId);
    const isNewer = word > packWord(before.cycle, before.used);
    if (!isNewer && total <= before.total) return undefined;
    const { cycle, used } = isNewer ? unpackWord(word) : before;
    const day = Math.max(before.day, today);
    const added = Math.max(0, total - before.total);
    return {
      cycle,
      used,
      total: before.total + added,
      day,
      day_used: (day === before.day ? before.day_used : 0) + added,
    };
  }

  #saveSeen({ database }: Opened, seconds: number): void {
    const today = dayOf(seconds);
    database.prepare('UPDATE ledger SET last_seen_at = max(last_seen_at, ?)').run(seconds);
    if (today !== dayOf(this.#savedSeen))
      database.prepare('DELETE FROM usage_days WHERE day <= ?').run(today - USAGE_DAYS);
    this.#savedSeen = seconds;
    this.counters.lastSeenSeconds = Math.max(this.counters.lastSeenSeconds, seconds);
  }

  #fail(error: unknown, commit: number): void {
    const reason = failureReason(error) ?? (error instanceof Error ? error.message : String(error));
    if (this.counters.state !== STATE.failed || this.counters.reason !== reason) this.counters.reason = reason;
    this.counters.state = STATE.failed;
    this.counters.failed = commit;
  }

  #wasReplaced({ inode }: Opened): boolean {
    try {
      return statSync(this.#options.file, { bigint: true }).ino !== inode;
    } catch {
      this.#fail(
        new PagegateError('ledger_unavailable', `${this.#options.file} was removed while in use.`),
        this.counters.start(),
      );
      return true;
    }
  }

  #measure({ inode }: Opened): void {
    const log = statSync(`${this.#options.file}-wal`, { bigint: true, throwIfNoEntry: false });
    this.counters.walBytes = Number(log?.size ?? 0n);
    this.counters.served = { file: inode, log: log?.ino ?? 0n };
  }

  #release(): void {
    this.#opened?.database.close();
    this.#opened = undefined;
    this.#rows.clear();
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }
}
