/** The ledger's tables, version by version. A released step never changes; a new version adds a step at the end. */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { syncPath } from '../../platform/durable-files.ts';
import { readSmallFileIfAny } from '../../platform/small-file.ts';
import type { Database } from '../../platform/sqlite.ts';
import { tryWriterLock } from './identity.ts';

const ACCOUNTS = `
CREATE TABLE ledger (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  ledger_id TEXT NOT NULL,
  -- Incremented by every change of an account or a key. Servers drop what they have cached when it changes.
  revision INTEGER NOT NULL
) STRICT;
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('created', 'active', 'suspended', 'closed')),
  created_at INTEGER NOT NULL,
  plan TEXT,
  quota_limit INTEGER CHECK (quota_limit >= 1),
  -- The second in which the first subscription began; cycles count from it.
  cycle_anchor INTEGER,
  -- A pending downgrade.
  next_plan TEXT,
  next_limit INTEGER CHECK (next_limit >= 1),
  next_from_cycle INTEGER,
  CHECK ((plan IS NULL) = (quota_limit IS NULL) AND (plan IS NULL) = (cycle_anchor IS NULL)),
  CHECK ((next_plan IS NULL) = (next_limit IS NULL) AND (next_plan IS NULL) = (next_from_cycle IS NULL))
) STRICT;
CREATE TABLE api_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  hash TEXT NOT NULL UNIQUE,
  -- AES-256-GCM: nonce, ciphertext, tag; vault_id names the encryption key.
  sealed BLOB,
  vault_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- The second from which on a rotated key is refused; null if the key does not expire.
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id);
CREATE TABLE payments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  at INTEGER NOT NULL,
  plan TEXT NOT NULL,
  quota_limit INTEGER NOT NULL,
  reference TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE meters (
  account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
  -- The highest cycle seen, and the lookups charged in it. Neither ever goes back.
  cycle INTEGER NOT NULL DEFAULT 0,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0)
) STRICT;
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  account_id INTEGER REFERENCES accounts (id),
  before TEXT,
  after TEXT
) STRICT;
CREATE INDEX audit_by_account ON audit (account_id);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER meters_never_go_back BEFORE UPDATE ON meters
  WHEN NEW.cycle < OLD.cycle OR (NEW.cycle = OLD.cycle AND NEW.used < OLD.used)
  BEGIN SELECT RAISE(ABORT, 'a meter never goes back'); END;
INSERT INTO ledger VALUES (1, lower(hex(randomblob(16))), 1);
`;

const USAGE = `
ALTER TABLE meters ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
-- The day (since 1970-01-01) of the last charge and its lookups; older days are moved to usage_days.
ALTER TABLE meters ADD COLUMN day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN day_used INTEGER NOT NULL DEFAULT 0;
UPDATE meters SET total = used;
CREATE TABLE usage_days (
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  day INTEGER NOT NULL,
  lookups INTEGER NOT NULL,
  PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
`;

const CLOCK = `
-- The latest second the ledger has seen; a clock far ahead of it is refused until an operator confirms it.
ALTER TABLE ledger ADD COLUMN last_seen_at INTEGER NOT NULL DEFAULT 0;
`;

const RESERVATIONS = `
-- Lookups of the cycle that may be spent without reading this file; durable before they are spent. What exceeds \`used\` counts as used
-- if the exact usage is unknown.
ALTER TABLE meters ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
-- Incremented by each correction of an operator. Only a correction may lower a meter.
ALTER TABLE meters ADD COLUMN corrections INTEGER NOT NULL DEFAULT 0;
UPDATE meters SET reserved = used;
DROP TRIGGER meters_never_go_back;
CREATE TRIGGER meters_never_go_back BEFORE UPDATE ON meters
  WHEN NEW.corrections = OLD.corrections AND (NEW.cycle < OLD.cycle OR (NEW.cycle = OLD.cycle AND NEW.used < OLD.used))
  BEGIN SELECT RAISE(ABORT, 'a meter never goes back'); END;
CREATE TRIGGER meters_use_what_is_reserved BEFORE UPDATE ON meters WHEN NEW.used > NEW.reserved
  BEGIN SELECT RAISE(ABORT, 'used is more than reserved'); END;
CREATE TRIGGER accounts_have_meters AFTER INSERT ON accounts BEGIN INSERT INTO meters (account_id) VALUES (NEW.id); END;
-- Number of the latest commit of the ledger writer.
ALTER TABLE ledger ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
-- Where the ledger was moved to; it is not served from here any more.
ALTER TABLE ledger ADD COLUMN moved_to TEXT;
-- In a node's copy: the id of the copied fleet, how often the engine has lost commits, and how often the node's ledger writer was started.
ALTER TABLE ledger ADD COLUMN fleet_id TEXT;
ALTER TABLE ledger ADD COLUMN history INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
-- Corrections that the ledger writer has not applied yet.
CREATE TABLE corrections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  cycle INTEGER,
  used INTEGER CHECK (used >= 0),
  credit INTEGER NOT NULL DEFAULT 0 CHECK (credit >= 0)
) STRICT;
`;

interface Migration {
  readonly sql: string;
  /** What a step does after its statements, in the same transaction. */
  readonly run?: (database: Database, file: string) => void;
}

/** Step i migrates a file from version i to i + 1. */
export const MIGRATIONS: readonly Migration[] = [
  { sql: ACCOUNTS },
  { sql: USAGE },
  { sql: CLOCK },
  { sql: RESERVATIONS, run: takeEarlierCounters },
];

/** The version that this program writes. */
export const LEDGER_VERSION: number = MIGRATIONS.length;

export interface MigrateOptions {
  readonly readonly?: boolean;
  /** The caller holds the ledger writer's lock. */
  readonly isLocked?: boolean;
  /** Replaced in tests. */
  readonly target?: number;
}

/**
 * Migrates a file to the current version. Each step and its version number are one transaction. An older ledger is first copied to a file
 * beside it.
 *
 * @throws PagegateError ledger_version if a newer program wrote the file, or if it is older and opened for reading only; ledger_in_use
 * if it is older and a server uses it.
 */
export function migrate(database: Database, file: string, options: MigrateOptions = {}): void {
  const { readonly = false, isLocked = false, target = LEDGER_VERSION } = options;
  const versionOf = (): number => Number(database.pragma('user_version', { simple: true }));
  const found = versionOf();
  if (found === target) return;
  if (found > target || readonly) {
    throw new PagegateError('ledger_version', `${file}: expected version ${target}, got ${found}.`, {
      file,
      version: found,
    });
  }
  const release = isLocked || found === 0 ? () => {} : tryWriterLock(file);
  if (release === undefined) {
    const what = `${file} is of version ${found}, and a server of that version runs. Stop it, then run this again.`;
    throw new PagegateError('ledger_in_use', what, { file, version: found });
  }
  try {
    if (found > 0) keepEarlier(database, file, found);
    for (let version = found; version < target; version += 1) {
      const { sql, run } = MIGRATIONS[version]!;
      database
        .transaction(() => {
          // Another process may have migrated the file between the check above and this lock.
          if (versionOf() !== version) return;
          database.exec(sql);
          run?.(database, file);
          database.pragma(`user_version = ${version + 1}`);
        })
        .immediate();
    }
    rmSync(earlierCounters(file), { force: true });
  } finally {
    release();
  }
}

/** Copies the unchanged file, so that it is possible to return to the earlier program. */
function keepEarlier(database: Database, file: string, version: number): void {
  const copy = `${file}.version-${version}`;
  rmSync(copy, { force: true });
  database.prepare('VACUUM INTO ?').run(copy);
  syncPath(copy);
  syncPath(dirname(copy));
}

/** The file in which versions before 4 kept charges that were not committed yet. */
const earlierCounters = (file: string): string => join(dirname(file), 'counters.map');

/** Layout of that file: a header with the ledger's id, a list of marks, then slots. A slot has two 64-bit words: cycle · 2^40 + used, and total. */
const EARLIER = { idOffset: 8, idSize: 16, slotsOffset: 12_288, slotSize: 64, usedBits: 40n } as const;

/** Adds charges that a server of an earlier version had not committed when it died. */
function takeEarlierCounters(database: Database, file: string): void {
  const options = { code: 'ledger_unavailable', maxBytes: 8 * 2 ** 20 } as const;
  const bytes = readSmallFileIfAny(earlierCounters(file), options);
  const ledgerId = database.prepare('SELECT ledger_id FROM ledger').pluck().get();
  const { idOffset, idSize, slotsOffset, slotSize, usedBits } = EARLIER;
  if (bytes === undefined || bytes.toString('hex', idOffset, idOffset + idSize) !== ledgerId) return;
  const raise = database.prepare(
    `UPDATE meters SET cycle = @cycle, used = @used, reserved = @used, total = max(total, @total)
     WHERE account_id = @id AND (cycle < @cycle OR (cycle = @cycle AND used < @used)) AND @used <=
       (SELECT max(quota_limit, coalesce(next_limit, 0)) FROM accounts WHERE id = @id)`,
  );
  for (let id = 1; slotsOffset + (id + 1) * slotSize <= bytes.length; id += 1) {
    const word = bytes.readBigUInt64LE(slotsOffset + id * slotSize);
    const total = Number(bytes.readBigUInt64LE(slotsOffset + id * slotSize + 8));
    const [cycle, used] = [Number(word >> usedBits), Number(word & ((1n << usedBits) - 1n))];
    // Skip a cycle that no clock can have reached: that version could leave such damage.
    if (word > 0n && cycle < CYCLE_MAX && total <= Number.MAX_SAFE_INTEGER) raise.run({ id, cycle, used, total });
  }
}

/** An upper bound of cycle numbers: more than three hundred years. */
const CYCLE_MAX = 4_000;
