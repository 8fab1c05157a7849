/** Restores a backup of a ledger without giving back what was used since. */
import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { renameDurable, syncPath } from '../platform/durable-files.ts';
import { makeFolder } from '../platform/folders.ts';
import type { Database } from '../platform/sqlite.ts';
import { type Counters, SLOT_COUNT } from './counters/counters.ts';
import { readCounters, removeCounters } from './counters/location.ts';
import { cycleAt, dayOf } from './cycle.ts';
import { CLOCK_LEAP_SECONDS } from './store/clock.ts';
import { openDatabase } from './store/database.ts';
import { asideName, identityFile, noteIdentity, readIdentity, tryWriterLock } from './store/identity.ts';
import { createMeterStore, knownUsage, METER_COLUMNS, type MeterRow } from './store/meters.ts';
import { createReader } from './store/records.ts';
import { asLedgerError, isBusy } from './store/sqlite-failures.ts';

export interface RestoreOptions {
  readonly backup: string;
  readonly file: string;
  readonly actor: string;
  /** Restores even if nothing shows what was used since the backup. */
  readonly acceptUnknownUsage?: boolean;
  readonly now?: () => number;
}

/** What a restore did. */
export interface RestoreReport {
  /** Number of accounts in the backup. */
  readonly accounts: number;
  /** Accounts whose meter was raised to what was used since the backup, and by how many lookups. */
  readonly raised: readonly { readonly account: string; readonly lookups: number }[];
  /** Number of keys that were issued since the backup and stay valid. */
  readonly keptKeys: number;
  /** Number of keys that stay revoked or rotated, and of accounts that stay closed or suspended, although they were not yet in the backup. */
  readonly keptStricter: number;
  /** Names of accounts that are not in the backup. */
  readonly missing: readonly string[];
  /** The sources of what was used since the backup. */
  readonly knownFrom: readonly ('ledger' | 'counters')[];
  /** The new path of the replaced file; null if there was none. */
  readonly replaced: string | null;
}

/**
 * Replaces the ledger by a backup. What was used, revoked or closed since is taken from the replaced ledger, as far as it can
 * be read, and from the shared counters: a restore never refunds. The replaced file is kept beside the new one.
 *
 * @throws PagegateError ledger_in_use, restore_refused, ledger_unavailable.
 */
export function restoreLedger(options: RestoreOptions): RestoreReport {
  const { file } = options;
  const release = lockWriter(file);
  const temporary = `${file}.restore.tmp`;
  let old: Database | undefined;
  try {
    if (statSync(options.backup, { throwIfNoEntry: false })?.isFile() !== true) {
      throw new PagegateError('restore_refused', `${options.backup} is not a file.`);
    }
    rmSync(temporary, { force: true });
    copyFileSync(options.backup, temporary);
    const fresh = openBackup(temporary, options.backup);
    let report: ReturnType<typeof fill>;
    try {
      const ledgerId = createReader(fresh).ledgerId();
      refuseAnotherLedger(file, ledgerId);
      old = holdReplaced(file, ledgerId);
      report = fill(fresh, ledgerId, old !== undefined, options);
    } finally {
      fresh.close();
    }
    syncPath(temporary);
    const replaced = putAside(file, options.now?.() ?? Date.now());
    renameDurable(temporary, file);
    removeCounters(file, report.ledgerId);
    noteIdentity(file, report.ledgerId);
    const { ledgerId: _, ...fields } = report;
    return { ...fields, replaced };
  } catch (error) {
    throw fromSystem('ledger_unavailable', file, asLedgerError(error, file));
  } finally {
    old?.close();
    for (const end of ['', '-wal', '-shm']) rmSync(`${temporary}${end}`, { force: true });
    release();
  }
}

/** Takes the ledger writer's lock, which no server may hold now. Creates the ledger's folder if necessary. Returns what releases the lock. */
function lockWriter(file: string): () => void {
  try {
    makeFolder(dirname(file), 0o750);
    const release = tryWriterLock(file);
    if (release !== undefined) return release;
  } catch (error) {
    throw fromSystem('ledger_unavailable', file, error);
  }
  throw new PagegateError('ledger_in_use', 'Stop it, restore, and start it again.', { file });
}

/** Refuses a backup of another ledger than the one that belongs here, which would otherwise be lost. */
function refuseAnotherLedger(file: string, ledgerId: string): void {
  const expected = readIdentity(file)?.ledgerId;
  if (expected === undefined || !/^[0-9a-f]{32}$/.test(expected) || expected === ledgerId) return;
  throw new PagegateError(
    'restore_refused',
    `The backup is of another ledger: expected ${expected}, as ${identityFile(file)} says, got ${ledgerId}. ` +
      `Restore a backup of that one; to go on with this one and forget the other, move ${identityFile(file)} away first.`,
    { file, expected, got: ledgerId },
  );
}

/**
 * Opens the ledger that is being replaced and migrates it to the current version. It stays locked until it is closed, because a change made
 * after it was read would be lost. Returns undefined if it cannot be read.
 */
function holdReplaced(file: string, ledgerId: string): Database | undefined {
  if (!existsSync(file)) return undefined;
  let old: Database | undefined;
  try {
    old = openDatabase(file, { mustExist: true, isLocked: true });
    if (createReader(old).ledgerId() !== ledgerId)
      throw new PagegateError(
        'restore_refused',
        `The backup is of another ledger than ${file}; move the folder ${dirname(file)} away first.`,
      );
    old.prepare('SELECT count(*), sum(used) FROM meters').get();
    keepOthersOut(old);
    return old;
  } catch (error) {
    old?.close();
    const known = asLedgerError(error, file);
    if (isBusy(known) || (known instanceof PagegateError && known.code !== 'ledger_unavailable')) throw known;
    return undefined;
  }
}

function keepOthersOut(old: Database): void {
  try {
    // Move the write-ahead log into the file, because only the file is kept.
    old.pragma('wal_checkpoint(TRUNCATE)');
    old.exec('BEGIN IMMEDIATE');
  } catch (error) {
    // On a full or read-only disk, no other command can write either.
    if (isBusy(error)) throw error;
  }
}

/** Opens the copy of a backup and checks it. @throws PagegateError restore_refused if it is not a valid ledger, ledger_version. */
function openBackup(temporary: string, backup: string): Database {
  const refuse = (why: string): never => {
    throw new PagegateError('restore_refused', `${backup} is not a valid backup of a ledger: ${why}.`, { backup });
  };
  let fresh: Database | undefined;
  try {
    fresh = openDatabase(temporary, { mustExist: true, isLocked: true });
    const verdict = String(fresh.pragma('quick_check(1)', { simple: true }));
    return verdict === 'ok' ? fresh : refuse(verdict);
  } catch (error) {
    fresh?.close();
    const known = asLedgerError(error, temporary);
    if (!(known instanceof PagegateError) || known.code !== 'ledger_unavailable') throw known;
    const { code } = (known.cause ?? {}) as { code?: string };
    // Other errors, such as a full disk, do not mean that the backup is invalid.
    if (code === undefined) return refuse('it is empty, or of another program');
    if (code.startsWith('SQLITE_NOTADB')) return refuse('it is not a SQLite file');
    if (code.startsWith('SQLITE_CORRUPT')) return refuse('it is damaged');
    throw known;
  }
}

/** Merges into the copy of the backup what is known of the time since. */
function fill(
  fresh: Database,
  ledgerId: string,
  hasOld: boolean,
  { backup, file, actor, acceptUnknownUsage, now = Date.now }: RestoreOptions,
): Omit<RestoreReport, 'replaced'> & { readonly ledgerId: string } {
  const counters = readCounters(file, ledgerId);
  const knownFrom = [
    ...(hasOld ? (['ledger'] as const) : []),
    ...(counters === undefined ? [] : (['counters'] as const)),
  ];
  if (knownFrom.length === 0 && acceptUnknownUsage !== true) {
    throw new PagegateError(
      'restore_refused',
      'Neither the replaced ledger nor its counters can be read, so what was used since the backup is not known; ' +
        'to go on and give it away, say --accept-unknown-usage.',
    );
  }
  // Without a ledger to learn from, the backup itself is as good: nothing in it is later.
  fresh.prepare('ATTACH ? AS old').run(hasOld ? file : backup);
  const seconds = Math.floor(now() / 1000);
  const result = fresh
    .transaction(() => {
      const raised = raiseMeters(fresh, counters, seconds);
      keepAssignedIds(fresh, counters);
      const keptKeys = fresh.prepare(NEW_KEYS).run().changes;
      const keptStricter = fresh.prepare(STRICTER_KEYS).run().changes + fresh.prepare(STRICTER_STATES).run().changes;
      fresh.exec(LATER_USAGE);
      const missing = fresh.prepare<[], string>(MISSING).pluck().all();
      const accounts = Number(fresh.prepare('SELECT count(*) FROM main.accounts').pluck().get());
      const summary = JSON.stringify({ raised, keptKeys, keptStricter, missing, knownFrom });
      fresh
        .prepare("INSERT INTO audit (at, actor, action, after) VALUES (?, ?, 'ledger.restore', ?)")
        .run(seconds, actor.slice(0, 64), summary);
      return { accounts, raised, keptKeys, keptStricter, missing, knownFrom, ledgerId };
    })
    // Not immediate: that would ask for the lock of the old file, too.
    .deferred();
  fresh.exec('DETACH old');
  fresh.pragma('wal_checkpoint(TRUNCATE)');
  fresh.pragma('journal_mode = DELETE');
  return result;
}

/** Joins accounts that are the same in both files. The name must match, too: another account may have the same number. */
const ofSameAccount = (id: string): string =>
  `JOIN old.accounts o ON o.id = ${id} JOIN main.accounts a ON a.id = o.id AND a.name = o.name`;

/** Keys issued after the backup stay valid. Sealing binds them to ids, which are the same in both files. */
const NEW_KEYS = `INSERT OR IGNORE INTO main.api_keys SELECT k.* FROM old.api_keys k ${ofSameAccount('k.account_id')}`;

/** Revocations and rotations made after the backup stay in force … */
const STRICTER_KEYS = `
  UPDATE main.api_keys SET
    revoked_at = coalesce(api_keys.revoked_at, k.revoked_at),
    expires_at = coalesce(min(api_keys.expires_at, k.expires_at), api_keys.expires_at, k.expires_at)
  FROM old.api_keys k WHERE k.hash = api_keys.hash AND (
    (api_keys.revoked_at IS NULL AND k.revoked_at IS NOT NULL) OR
    (k.expires_at IS NOT NULL AND (api_keys.expires_at IS NULL OR k.expires_at < api_keys.expires_at)))`;

/** … and so do closures and suspensions. */
const STRICTER_STATES = `
  UPDATE main.accounts SET state = o.state FROM old.accounts o
  WHERE o.id = accounts.id AND o.name = accounts.name AND o.state IN ('suspended', 'closed')
    AND accounts.state NOT IN (o.state, 'closed')`;

/** What has expired since stays expired, even if the clock is set back. The usage by day is kept. */
const LATER_USAGE = `
  UPDATE main.ledger SET last_seen_at = max(last_seen_at, (SELECT last_seen_at FROM old.ledger));
  INSERT INTO main.usage_days SELECT d.* FROM old.usage_days d ${ofSameAccount('d.account_id')} WHERE true
    ON CONFLICT DO UPDATE SET lookups = max(lookups, excluded.lookups);`;

const MISSING = 'SELECT name FROM old.accounts EXCEPT SELECT name FROM main.accounts ORDER BY name';

/** Raises the backup's meters to what is known to have been used. If nothing newer is known, what was reserved in the backup counts as used. */
function raiseMeters(fresh: Database, counters: Counters | undefined, nowSeconds: number): RestoreReport['raised'] {
  const raised: { account: string; lookups: number }[] = [];
  const store = createMeterStore(fresh);
  const lastSeen = Number(fresh.prepare('SELECT last_seen_at FROM old.ledger').pluck().get() ?? 0);
  const oldMeter = fresh.prepare<[number], MeterRow>(
    `SELECT ${METER_COLUMNS} FROM old.meters ${ofSameAccount('account_id')} WHERE account_id = ?`,
  );
  const latest = Math.max(nowSeconds, lastSeen) + CLOCK_LEAP_SECONDS;
  for (const { id, name, anchor } of createReader(fresh).allAccounts()) {
    const row = store.one(id);
    if (row === undefined) continue;
    const moment = { today: dayOf(nowSeconds), latestCycle: anchor === null ? 0 : cycleAt(anchor, latest) };
    const known = knownUsage(oldMeter.get(id) ?? row, counters?.view(id), moment);
    const isLater = known.cycle > row.cycle || (known.cycle === row.cycle && known.used >= row.used);
    const after: MeterRow = isLater ? known : { ...row, used: row.reserved };
    const total = Math.max(row.total, after.total);
    if (after.used !== row.used || after.cycle !== row.cycle)
      raised.push({ account: name, lookups: Math.max(0, total - row.total) });
    store.save(id, row, { ...after, reserved: after.used, total });
  }
  return raised;
}

/**
 * Ensures that ids assigned since the backup are not assigned again. The counters keep usage under the account's id, so a new account
 * with the same id would start with the usage of another.
 */
function keepAssignedIds(fresh: Database, counters: Counters | undefined): void {
  let highest = SLOT_COUNT - 1;
  while (highest > 0 && counters?.view(highest) === undefined) highest -= 1;
  const assigned = fresh.prepare<[], { name: string; seq: number }>('SELECT name, seq FROM old.sqlite_sequence').all();
  const raise = fresh.prepare('UPDATE main.sqlite_sequence SET seq = max(seq, @seq) WHERE name = @name');
  const add = fresh.prepare('INSERT INTO main.sqlite_sequence VALUES (@name, @seq)');
  for (const row of [...assigned, { name: 'accounts', seq: highest }]) if (raise.run(row).changes === 0) add.run(row);
}

/** Moves the replaced file and its write-ahead log away. A log left behind would be applied to the restored file. */
function putAside(file: string, nowMs: number): string | null {
  const aside = asideName(file, nowMs);
  const wasThere = existsSync(file);
  if (wasThere) renameSync(file, aside);
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) renameSync(`${file}-wal`, `${aside}-wal`);
  for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
  return wasThere ? aside : null;
}
