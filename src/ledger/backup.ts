/** Backup while serving, and a restore that never gives back what was used since. */
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { renameDurable, syncPath } from '../platform/durable.ts';
import { lockFile } from '../platform/libc.ts';
import {
  countersFile,
  openCounters,
  packWord,
  peekCounter,
  readCountersOwner,
  SLOT_COUNT,
  unpackWord,
} from './counters.ts';
import { openDatabase } from './database.ts';
import { asideName, openWriterLock, requireLedger } from './presence.ts';
import { createReader } from './records.ts';
import { asLedgerError, type Database } from './sqlite.ts';

/** Copies the ledger as it is at one moment, while it is in use. Keys in it stay sealed: the key file is never part of a backup. */
export function backupLedger(file: string, target: string): void {
  if (existsSync(target)) throw new PagegateError('backup_exists', `Got "${target}".`, { file: target });
  const temporary = `${target}.${process.pid}.tmp`;
  requireLedger(file);
  const database = openDatabase(file, { readonly: true });
  try {
    closeSync(openSync(temporary, 'wx', 0o600));
    database.prepare('VACUUM INTO ?').run(temporary);
    syncPath(temporary);
    renameDurable(temporary, target);
  } catch (error) {
    if (existsSync(temporary)) rmSync(temporary, { force: true });
    throw fromSystem('backup_failed', target, asBackupError(error, target));
  } finally {
    database.close();
  }
}

/** What ended a backup: the place that it goes to, or else the ledger. */
function asBackupError(error: unknown, target: string): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'SQLITE_FULL') return asLedgerError(error, target);
  return new PagegateError('backup_failed', `${target}: the disk is full.`, { path: target }, { cause: error });
}

/** What a full look at a ledger file found. */
export interface LedgerCheck {
  readonly ok: boolean;
  /** In SQLite's words; empty when all is well. */
  readonly problems: readonly string[];
}

/** Reads the whole file: structure, foreign keys. @throws PagegateError no_ledger, ledger_unavailable when it cannot be opened at all. */
export function checkLedger(file: string): LedgerCheck {
  requireLedger(file);
  const database = openDatabase(file, { readonly: true });
  try {
    const lines = database.prepare<[], string>('PRAGMA integrity_check(20)').pluck().all();
    const dangling = database.prepare<[], { table: string; rowid: number }>('PRAGMA foreign_key_check').all();
    const problems = [
      ...lines.filter((line) => line !== 'ok'),
      ...dangling.slice(0, 20).map(({ table, rowid }) => `${table}, row ${rowid}: its account is missing`),
    ];
    return { ok: problems.length === 0, problems };
  } catch (error) {
    throw asLedgerError(error, file);
  } finally {
    database.close();
  }
}

export interface RestoreOptions {
  readonly backup: string;
  readonly file: string;
  readonly actor: string;
  /** Goes on when nothing is left that says what was used since the backup. */
  readonly acceptUnknownUsage?: boolean;
  readonly now?: () => number;
}

/** What a restore did, account by account. */
export interface RestoreReport {
  /** Accounts of the backup. */
  readonly accounts: number;
  /** Meters that were raised to what was used since, in lookups. */
  readonly raised: readonly { readonly account: string; readonly lookups: number }[];
  /** Keys that were issued since the backup and go on. */
  readonly keptKeys: number;
  /** Keys that stay revoked or rotated, and accounts that stay closed or suspended, although the backup is from before. */
  readonly keptStricter: number;
  /** Accounts that the backup does not know. */
  readonly missing: readonly string[];
  /** What was used since the backup is known from here. */
  readonly knownFrom: readonly ('ledger' | 'counters')[];
  /** Where the replaced file lies now; null where there was none. */
  readonly replaced: string | null;
}

type Row = Record<string, number | string | null>;

/**
 * Puts a backup in the ledger's place. What was used, revoked or closed since is taken from the replaced ledger as far as it can
 * be read, and from the shared counters: a restore never refunds. The replaced file is kept beside it.
 *
 * @throws PagegateError ledger_in_use, restore_refused, ledger_unavailable.
 */
export function restoreLedger(options: RestoreOptions): RestoreReport {
  const { file } = options;
  const lock = createWriterLock(file);
  const temporary = `${file}.restore.tmp`;
  try {
    if (!lockFile(lock, 'exclusive'))
      throw new PagegateError('ledger_in_use', 'Stop it, restore, and start it again.', { file });
    if (statSync(options.backup, { throwIfNoEntry: false })?.isFile() !== true) {
      throw new PagegateError('restore_refused', `${options.backup} is no file.`);
    }
    rmSync(temporary, { force: true });
    copyFileSync(options.backup, temporary);
    const report = fill(temporary, options);
    syncPath(temporary);
    const replaced = putAside(file, options.now?.() ?? Date.now());
    renameDurable(temporary, file);
    return { ...report, replaced };
  } catch (error) {
    throw fromSystem('ledger_unavailable', file, asLedgerError(error, file));
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(`${temporary}${end}`, { force: true });
    closeSync(lock);
  }
}

/** The lock that says that no server keeps this ledger; it comes with the ledger's folder. */
function createWriterLock(file: string): number {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
    return openWriterLock(file);
  } catch (error) {
    throw fromSystem('ledger_unavailable', file, error);
  }
}

/** The usage of another ledger is never lost by restoring this one in its place. */
function refuseOthersCounters(file: string, ledgerId: string): void {
  const owner = readCountersOwner(file);
  if (owner === undefined || owner === 'damaged' || owner === ledgerId) return;
  const counters = countersFile(file);
  throw new PagegateError(
    'restore_refused',
    `The backup is of another ledger: expected ${owner}, whose usage ${counters} holds, got ${ledgerId}. ` +
      `Restore a backup of that one; to go on with this one and forget the usage of the other, move ${counters} away first.`,
    { file, expected: owner, got: ledgerId },
  );
}

/** Opens the ledger that is being replaced; undefined when nothing can be read from it. */
function openOld(file: string, ledgerId: string): Database | undefined {
  if (!existsSync(file)) return undefined;
  let old: Database | undefined;
  try {
    old = openDatabase(file, { mustExist: true });
    const id = old.prepare('SELECT ledger_id FROM ledger').pluck().get();
    if (id !== ledgerId) {
      throw new PagegateError('restore_refused', 'The backup is of another ledger; move the present one away first.');
    }
    old.prepare('SELECT count(*), sum(used) FROM meters').get();
    return old;
  } catch (error) {
    old?.close();
    if (error instanceof PagegateError && error.code !== 'ledger_unavailable') throw error;
    return undefined;
  }
}

/** Opens the copy of a backup and reads it through. @throws PagegateError restore_refused where it is no sound ledger, ledger_version. */
function openBackup(temporary: string, backup: string): Database {
  const refuse = (why: string): never => {
    throw new PagegateError('restore_refused', `${backup} is no sound backup of a ledger: ${why}.`, { backup });
  };
  let fresh: Database | undefined;
  try {
    fresh = openDatabase(temporary, { mustExist: true });
    const verdict = String(fresh.pragma('quick_check(1)', { simple: true }));
    return verdict === 'ok' ? fresh : refuse(verdict);
  } catch (error) {
    fresh?.close();
    const known = asLedgerError(error, temporary);
    if (!(known instanceof PagegateError) || known.code !== 'ledger_unavailable') throw known;
    const { code } = (known.cause ?? {}) as { code?: string };
    // A full disk says nothing about the backup.
    if (code === undefined) return refuse('it is empty, or of another program');
    if (code.startsWith('SQLITE_NOTADB')) return refuse('it is no SQLite file');
    if (code.startsWith('SQLITE_CORRUPT')) return refuse('it is damaged');
    throw known;
  }
}

function fill(
  temporary: string,
  { backup, file, actor, acceptUnknownUsage, now = Date.now }: RestoreOptions,
): Omit<RestoreReport, 'replaced'> {
  const fresh = openBackup(temporary, backup);
  let old: Database | undefined;
  try {
    const ledgerId = String(fresh.prepare('SELECT ledger_id FROM ledger').pluck().get());
    refuseOthersCounters(file, ledgerId);
    old = openOld(file, ledgerId);
    const hasCounters = existsSync(countersFile(file)) && peekCounter(file, ledgerId, 0) !== undefined;
    const knownFrom = [
      ...(old === undefined ? [] : (['ledger'] as const)),
      ...(hasCounters ? (['counters'] as const) : []),
    ];
    if (knownFrom.length === 0 && acceptUnknownUsage !== true) {
      throw new PagegateError(
        'restore_refused',
        'Neither the replaced ledger nor its counters can be read, so what was used since the backup is not known; ' +
          'to go on and give it away, say --accept-unknown-usage.',
      );
    }
    const result = fresh
      .transaction(() => {
        const raised = raiseMeters(fresh, old, file, ledgerId);
        keepNumbers(fresh, old, file, ledgerId);
        // What has expired since stays expired, whatever the clock says by then.
        if (old !== undefined) {
          const latest = createReader(old).lastSeenSeconds();
          fresh.prepare('UPDATE ledger SET last_seen_at = max(last_seen_at, ?)').run(latest);
        }
        const keptKeys = old === undefined ? 0 : copyNewKeys(fresh, old);
        const keptStricter = old === undefined ? 0 : keepStricter(fresh, old);
        const missing = old === undefined ? [] : namesMissing(fresh, old);
        const accounts = Number(fresh.prepare('SELECT count(*) FROM accounts').pluck().get());
        const summary = JSON.stringify({ raised, keptKeys, keptStricter, missing, knownFrom });
        fresh
          .prepare("INSERT INTO audit (at, actor, action, after) VALUES (?, ?, 'ledger.restore', ?)")
          .run(Math.floor(now() / 1000), actor.slice(0, 64), summary);
        return { accounts, raised, keptKeys, keptStricter, missing, knownFrom };
      })
      .immediate();
    fresh.pragma('wal_checkpoint(TRUNCATE)');
    fresh.pragma('journal_mode = DELETE');
    return result;
  } finally {
    fresh.close();
    old?.close();
  }
}

function raiseMeters(
  fresh: Database,
  old: Database | undefined,
  file: string,
  ledgerId: string,
): RestoreReport['raised'] {
  const raised: { account: string; lookups: number }[] = [];
  const columns = 'name, account_id, cycle, used, total, day, day_used';
  const from = 'FROM meters JOIN accounts ON accounts.id = account_id';
  type Meter = {
    name: string;
    account_id: number;
    cycle: number;
    used: number;
    total: number;
    day: number;
    day_used: number;
  };
  const save = fresh.prepare(
    'UPDATE meters SET cycle = ?, used = ?, total = ?, day = ?, day_used = ? WHERE account_id = ?',
  );
  for (const meter of fresh.prepare<[], Meter>(`SELECT ${columns} ${from}`).all()) {
    const { account_id: id } = meter;
    const before = old
      ?.prepare<[number, string], Meter>(`SELECT ${columns} ${from} WHERE account_id = ? AND name = ?`)
      .get(id, meter.name);
    const counter = peekCounter(file, ledgerId, id);
    let word = packWord(meter.cycle, meter.used);
    if (before !== undefined && packWord(before.cycle, before.used) > word) word = packWord(before.cycle, before.used);
    if (counter !== undefined && counter.word > word) word = counter.word;
    const total = Math.max(meter.total, before?.total ?? 0, counter?.total ?? 0);
    if (total > meter.total || word > packWord(meter.cycle, meter.used)) {
      raised.push({ account: meter.name, lookups: Math.max(total - meter.total, 0) });
    }
    const { cycle, used } = unpackWord(word);
    const today = before !== undefined && before.day >= meter.day ? before : meter;
    save.run(cycle, used, total, today.day, today.day_used, id);
  }
  if (old !== undefined) copyUsage(fresh, old);
  return raised;
}

function copyUsage(fresh: Database, old: Database): void {
  const insert = fresh.prepare(
    `INSERT INTO usage_days SELECT @id, @day, @lookups WHERE EXISTS (SELECT 1 FROM accounts WHERE id = @id AND name = @name)
     ON CONFLICT DO UPDATE SET lookups = max(lookups, excluded.lookups)`,
  );
  const all = 'SELECT id, name, day, lookups FROM usage_days JOIN accounts ON id = account_id';
  for (const row of old.prepare<[], Row>(all).iterate()) insert.run(row);
}

/**
 * Numbers that were given out since are not given out again: an account's usage lies in the counters under its number, so a new one
 * would begin with what another has used.
 */
function keepNumbers(fresh: Database, old: Database | undefined, file: string, ledgerId: string): void {
  const add = fresh.prepare(
    'INSERT INTO sqlite_sequence (name, seq) SELECT @name, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = @name)',
  );
  const raise = fresh.prepare('UPDATE sqlite_sequence SET seq = max(seq, @seq) WHERE name = @name');
  const given = old?.prepare<[], { name: string; seq: number }>('SELECT name, seq FROM sqlite_sequence').all() ?? [];
  for (const one of [...given, { name: 'accounts', seq: highestCounted(file, ledgerId) }]) {
    add.run({ name: one.name });
    raise.run(one);
  }
}

/** The highest number of an account that the shared counters have seen; 0 where they are missing, short, or of another ledger. */
function highestCounted(file: string, ledgerId: string): number {
  if (peekCounter(file, ledgerId, SLOT_COUNT - 1) === undefined) return 0;
  const counters = openCounters(file, { create: false });
  try {
    let id = SLOT_COUNT - 1;
    while (id > 0 && counters.word(id) === 0n) id -= 1;
    return id;
  } finally {
    counters.close();
  }
}

/** Keys issued after the backup go on; the ids, to which they are sealed, are the same in both files. */
function copyNewKeys(fresh: Database, old: Database): number {
  let copied = 0;
  const insert = fresh.prepare(
    `INSERT OR IGNORE INTO api_keys (id, account_id, hash, sealed, vault_id, created_at, expires_at, revoked_at)
     SELECT @id, @account_id, @hash, @sealed, @vault_id, @created_at, @expires_at, @revoked_at
     WHERE EXISTS (SELECT 1 FROM accounts WHERE id = @account_id AND name = @name)`,
  );
  const all = 'SELECT api_keys.*, name FROM api_keys JOIN accounts ON accounts.id = account_id';
  for (const row of old.prepare<[], Row>(all).iterate()) copied += insert.run(row).changes;
  return copied;
}

/** Revocations, rotations, closures and suspensions made after the backup stay in force. */
function keepStricter(fresh: Database, old: Database): number {
  let kept = 0;
  const key = fresh.prepare(
    `UPDATE api_keys SET revoked_at = coalesce(revoked_at, @revoked_at), expires_at = coalesce(min(expires_at, @expires_at), expires_at, @expires_at)
     WHERE hash = @hash AND (coalesce(revoked_at, -1) IS NOT coalesce(revoked_at, @revoked_at, -1) OR expires_at IS NOT coalesce(min(expires_at, @expires_at), expires_at, @expires_at))`,
  );
  const strict =
    'SELECT hash, revoked_at, expires_at FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at IS NOT NULL';
  for (const row of old.prepare<[], Row>(strict).all()) kept += key.run(row).changes;
  const state = fresh.prepare(
    `UPDATE accounts SET state = @state WHERE id = @id AND name = @name AND state <> @state AND state <> 'closed'`,
  );
  const states = "SELECT id, name, state FROM accounts WHERE state IN ('suspended', 'closed')";
  for (const row of old.prepare<[], Row>(states).all()) kept += state.run(row).changes;
  return kept;
}

function namesMissing(fresh: Database, old: Database): string[] {
  const known = new Set(fresh.prepare<[], string>('SELECT name FROM accounts').pluck().all());
  return old
    .prepare<[], string>('SELECT name FROM accounts')
    .pluck()
    .all()
    .filter((name) => !known.has(name));
}

/** Moves the replaced file and its log away, whole: a log that stayed would be played into the restored file. */
function putAside(file: string, nowMs: number): string | null {
  const aside = asideName(file, nowMs);
  const wasThere = existsSync(file);
  for (const end of ['', '-wal']) if (existsSync(`${file}${end}`)) renameSync(`${file}${end}`, `${aside}${end}`);
  rmSync(`${file}-shm`, { force: true });
  return wasThere ? aside : null;
}
