/** Fills an installation for the bench of the console: decisions, accounts with 400 days of usage, time series, sessions. */
import { once } from 'node:events';
import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ConsoleStore } from '../../src/console/store/store.ts';
import { HOUR, MINUTE, type Sample } from '../../src/console/store/time-series.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { LATENCY_BOUNDS_SECONDS } from '../../src/server/metric-definitions.ts';

export const DECISIONS = 1_000_000;
const USAGE_DAYS = 400;
export const ACCOUNTS = 1_000;
const USERS = 20;
const DAY_MS = 86_400_000;
const DAY_SECONDS = DAY_MS / 1_000;
const RARE = DECISIONS / 2;
/** A domain that occurs in only one line of the decision log. */
export const RARE_DOMAIN = 'rare.example.net';

/** Writes half a day of decisions, one line per 43 ms. Denied ones belong to the account `even`. One line has the domain {@link RARE_DOMAIN}. */
export async function writeDecisions(file: string): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  const stream = createWriteStream(file);
  const startMs = Date.now() - DAY_MS / 2;
  for (let n = 0; n < DECISIONS; n++) {
    const host = n === RARE ? RARE_DOMAIN : `host-${n % 997}.example.com`;
    const line = JSON.stringify({
      time: new Date(startMs + (n * DAY_MS) / 2 / DECISIONS).toISOString(),
      id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      account: n % 2 === 0 ? 'even' : 'odd',
      method: 'GET',
      scheme: 'https',
      host,
      path: '/products/***',
      domain: host,
      found: true,
      verdict: n % 10 === 0 ? 'deny' : 'allow',
      matched: { layer: 'page_type_db', id: 'login', note: 'Where people sign in: credentials are not for agents.' },
      data: '1.0123456789ab',
      latency_ms: 0.021,
    });
    if (!stream.write(`${line}\n`)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
}

/** Writes accounts besides the one that the bench uses, each with a plan, a key and usage on every day. Their keys are not valid. */
export function writeAccounts(file: string): void {
  const database = new Sqlite(file);
  const account = database
    .prepare<[string, number, number], number>(
      `INSERT INTO accounts (name, state, created_at, plan, quota_limit, cycle_anchor)
       VALUES (?, 'active', ?, 'pro', 1000000, ?) RETURNING id`,
    )
    .pluck();
  const key = database.prepare(
    "INSERT INTO api_keys (account_id, hash, vault_id, created_at) VALUES (?, ?, 'none', ?)",
  );
  const usage = database.prepare('INSERT OR REPLACE INTO usage_days VALUES (?, ?, ?)');
  const today = Math.floor(Date.now() / DAY_MS);
  const began = Math.floor(Date.now() / 1_000) - (USAGE_DAYS - 1) * DAY_SECONDS;
  database.transaction(() => {
    const bench = database.prepare<[string], number>('SELECT id FROM accounts WHERE name = ?').pluck().get('bench')!;
    const ids = [bench];
    for (let i = 1; i < ACCOUNTS; i++) {
      const id = account.get(`account-${i}`, began, began)!;
      key.run(id, `none-${i}`, began);
      ids.push(id);
    }
    for (const id of ids) for (let age = 1; age < USAGE_DAYS; age++) usage.run(id, today - age, 1_000 + age);
  })();
  database.close();
}

/** Writes samples for every minute of a day and for every hour of a quarter. */
export function writeSeries(store: ConsoleStore): void {
  const now = Math.floor(Date.now() / 1_000 / MINUTE) * MINUTE;
  const samples: Sample[] = [];
  for (let at = now - 92 * 24 * HOUR; at < now; at += at < now - 24 * HOUR ? HOUR : MINUTE)
    samples.push({
      at,
      requests: { 200: 1_000 + (at % 977), 429: 3 },
      verdicts: { allow: 800, flag: 50, deny: 150 + (at % 77) },
      latency: [...LATENCY_BOUNDS_SECONDS, 0].map((_, i) => (i * 37) % 100),
    });
  store.series.add(samples);
}

/** Creates `count` sessions, spread over several users. Returns their cookies for the console's address. */
export function signIn(store: ConsoleStore, url: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const name = `user-${i % USERS}`;
    if (i < USERS) store.users.add(name, 'viewer', 'bench');
    const token = store.sessions.begin({ role: 'viewer', name, keyId: null, address: 'bench' });
    return `__Host-pagegate-${new URL(url).port}=${token}`;
  });
}
