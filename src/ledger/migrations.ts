/** The ledger's tables, version by version. A released step never changes; a new version is a new step at the end. */
import { PagegateError } from '../errors.ts';
import type { Database } from './sqlite.ts';

const ACCOUNTS = `
CREATE TABLE ledger (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  ledger_id TEXT NOT NULL,
  -- Grows with every change of an account or a key; servers drop what they remember when it moves.
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
  -- A downgrade that waits for its boundary.
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
  -- The second from which a rotated key is refused; null while it is current.
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

/** Step i brings a file from version i to i + 1. */
export const MIGRATIONS: readonly string[] = [ACCOUNTS, USAGE, CLOCK];

/** The version that this program writes. */
export const LEDGER_VERSION = MIGRATIONS.length;

/**
 * Brings a file to the current version, each step in a transaction of its own with its version number.
 *
 * @throws PagegateError ledger_version when a newer program wrote the file, or when it is older and opened for reading only.
 */
export function migrate(database: Database, file: string, readonly: boolean, target = LEDGER_VERSION): void {
  const versionOf = (): number => Number(database.pragma('user_version', { simple: true }));
  const found = versionOf();
  if (found === target) return;
  if (found > target || readonly) {
    throw new PagegateError('ledger_version', `${file}: expected version ${target}, got ${found}.`, {
      file,
      version: found,
    });
  }
  for (let version = found; version < target; version += 1) {
    database
      .transaction(() => {
        // Another process may have migrated between the look above and this lock.
        if (versionOf() !== version) return;
        database.exec(MIGRATIONS[version]!);
        database.pragma(`user_version = ${version + 1}`);
      })
      .immediate();
  }
}
