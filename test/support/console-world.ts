/** A console with data on every page. Wherever outsiders can supply text, that text contains markup. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoggedDecision } from '../../src/console/decisions/filter.ts';
import { ConsoleStore } from '../../src/console/store/store.ts';
import { HOUR, MINUTE, type Sample } from '../../src/console/store/time-series.ts';
import { openIndex } from '../../src/index/read.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { LATENCY_BOUNDS_SECONDS } from '../../src/server/metric-definitions.ts';
import { createBench } from '../refresh/support.ts';
import { startTestConsole, type TestConsole } from './console.ts';
import type { EntryInput } from './index-file.ts';
import type { TestServer } from './server.ts';

/** Becomes an element, an attribute or a script if a page forgets to escape it. */
export const HOSTILE = `"><img src=x onerror="window.pwned=1" class='hostile'><script>window.pwned=1</script>\`{{7*7}}`;
/** Characters that reverse the direction of text (U+202E, U+2066) and control characters that terminals act on. */
export const TURNED = '\u202egnp.exe\u2066 \u001b[31m\u0000 \u2028';

const PAGES = { login: 'https://shop.example.com/login', pricing: "https://shop.example.com/pricing?a='b'" };

const ENTRIES: readonly EntryInput[] = [
  { domain: 'shop.example.com', language: 'en', page_types: PAGES, open_page_rank: 6.5, global_rank: 1234 },
  { domain: 'news.example.org', language: 'de', page_types: {} },
];

const MORE: readonly EntryInput[] = [
  { domain: 'shop.example.com', language: 'en', page_types: { login: PAGES.login } },
  { domain: 'new.example.net', language: 'fr', page_types: {} },
];

export interface WorldOptions {
  /** Whether text from outsiders contains markup. Default: true. */
  readonly isHostile?: boolean;
}

/** Starts the console: accounts `pro` and `rival`, three generations and a delivered drop, a day of samples, 400 days of usage, decisions. */
export async function startWorld({ isHostile = true }: WorldOptions = {}): Promise<TestConsole> {
  const drops = createBench();
  const vendor = drops.trusted[0]!.key.export({ type: 'spki', format: 'pem' }).toString();
  const drop = drops.drop('delivered', { revision: 4 });
  const world = await startTestConsole(
    {
      entries: ENTRIES,
      accounts: { pro: { plan: 'pro' }, rival: { plan: 'business' }, idle: {} },
      config: {
        decision_log: { enabled: true },
        refresh: { drop, trusted_keys: { vendor } },
      },
    },
    (server) => furnish(server, isHostile),
  );
  return {
    ...world,
    stop: async () => {
      await world.stop();
      drops.remove();
    },
  };
}

async function furnish(server: TestServer, isHostile: boolean): Promise<void> {
  const { paths } = server;
  server.publish(2, MORE);
  server.publish(3, ENTRIES);
  writeReports(server, isHostile);
  writeSeries(paths.consoleFile);
  writeDecisions(paths.logDir, isHostile);
  const ledger = await openLedger({
    file: paths.ledgerFile,
    keyFile: paths.ledgerKeyFile,
    actor: isHostile ? HOSTILE : 'dana',
  });
  await ledger.subscribe('rival', 'enterprise', isHostile ? `INV ${HOSTILE}`.slice(0, 120) : 'INV 2');
  await ledger.rotateKey('rival', 86_400);
  if (isHostile) await ledger.note(`note ${HOSTILE}`, HOSTILE, TURNED);
  await ledger.close();
  writeUsage(paths.ledgerFile);
}

/** Writes the reports that refreshes would have written. If `isHostile`, the first one has a hostile dataset name. */
function writeReports({ paths }: TestServer, isHostile: boolean): void {
  for (const generation of [1, 2, 3]) {
    const folder = join(paths.indexDir, 'generations', String(generation));
    const index = openIndex(join(folder, 'index.pgx'));
    const { manifestSha256, recordCount, sizeBytes, created } = index.info;
    index.close();
    const report = {
      format: 'pagegate-generation/1',
      generation,
      dataset: isHostile && generation === 1 ? HOSTILE : 'test',
      revision: generation,
      created,
      manifestSha256,
      signedBy: isHostile && generation === 1 ? HOSTILE : 'vendor',
      recordCount,
      sizeBytes,
      builtAt: new Date(Date.now() - (4 - generation) * 86_400_000).toISOString(),
      build: {},
    };
    writeFileSync(join(folder, 'report.json'), JSON.stringify(report));
  }
  if (!isHostile) return;
  const marks = [{ manifestSha256: 'f'.repeat(64), generation: 7, revision: 7, withdrawnAt: HOSTILE }];
  writeFileSync(join(paths.indexDir, 'withdrawn.json'), JSON.stringify(marks));
}

/** Writes samples of `days` days: the request rate follows a daily sine wave; 20 % of the verdicts are denials. */
export function writeSeries(file: string, days = 92): void {
  const store = new ConsoleStore(file);
  const now = Math.floor(Date.now() / 1000);
  const begin = now - (now % HOUR) - days * 24 * HOUR;
  const samples: Sample[] = [];
  for (let at = begin; at < now - MINUTE; at += at < now - 25 * HOUR ? HOUR : MINUTE) {
    const rate = Math.round(400 + 300 * Math.sin((at / (24 * HOUR)) * 2 * Math.PI));
    const verdicts = { allow: Math.round(rate * 0.7), flag: Math.round(rate * 0.1), deny: Math.round(rate * 0.2) };
    const latency = LATENCY_BOUNDS_SECONDS.map((_, i) => (i === 3 ? rate - 5 : i === 5 ? 4 : i === 8 ? 1 : 0));
    samples.push({ at, requests: { 200: rate, 401: 3, 429: 2 }, verdicts, latency: [...latency, 0] });
  }
  store.series.add(samples);
  store.close();
}

const VERDICTS = ['allow', 'allow', 'allow', 'flag', 'deny'];
const DAY_MS = 86_400_000;

/** A line of the decision log, `ageMs` old. */
export function decisionLine(n: number, ageMs: number, more: Partial<LoggedDecision> = {}): string {
  const verdict = VERDICTS[n % VERDICTS.length]!;
  const host = `host-${n % 23}.example.com`;
  const line: LoggedDecision = {
    time: new Date(Date.now() - ageMs).toISOString(),
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    account: n % 50 === 0 ? 'rival' : 'pro',
    method: n % 7 === 0 ? 'POST' : 'GET',
    scheme: 'https',
    host,
    path: `/products/item-${n}`,
    domain: host,
    found: n % 3 !== 0,
    verdict,
    matched: {
      layer: verdict === 'deny' ? 'page_type_db' : 'default',
      id: verdict === 'deny' ? 'login' : 'classified_read',
      note: 'A page where people sign in.',
    },
    data: '1.abcdef',
    latency_ms: 0.042,
    ...more,
  };
  return `${JSON.stringify(line)}\n`;
}

function writeDecisions(dir: string, isHostile: boolean): void {
  mkdirSync(dir, { recursive: true });
  const count = 300;
  const lines = Array.from({ length: count }, (_, n) => decisionLine(n, (count - n) * 1_000 + 60_000));
  const hostile: readonly Partial<LoggedDecision>[] = [
    { url: `https://x.example/${HOSTILE}`, verdict: 'deny' },
    { host: HOSTILE, domain: HOSTILE, verdict: 'deny' },
    { path: HOSTILE, account: HOSTILE },
    { method: HOSTILE, verdict: HOSTILE },
    { matched: { layer: HOSTILE, id: HOSTILE, note: HOSTILE }, verdict: 'deny' },
    { url: TURNED, domain: TURNED, account: TURNED, data: HOSTILE },
    { url: 'javascript:window.pwned=1' },
  ];
  if (isHostile) lines.push(...hostile.map((more, i) => decisionLine(count + i, 30_000 - i, more)));
  // The test has no worker with this number.
  writeFileSync(join(dir, 'decisions-9.ndjson'), lines.join(''));
}

function writeUsage(file: string): void {
  const database = new Sqlite(file);
  const insert = database.prepare(
    'INSERT OR REPLACE INTO usage_days (account_id, day, lookups) SELECT id, ?, ? FROM accounts WHERE name = ?',
  );
  const today = Math.floor(Date.now() / DAY_MS);
  database.transaction(() => {
    for (let age = 1; age < 400; age++) {
      insert.run(today - age, 2_000 + ((age * 37) % 900), 'pro');
      insert.run(today - age, 40_000 + ((age * 997) % 9_000), 'rival');
    }
  })();
  database.close();
}
