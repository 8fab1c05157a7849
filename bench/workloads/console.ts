/**
 * `npm run bench -- console`: how long each page takes with 400 days of usage and a million logged decisions, when the first lines of a filter
 * come, what a page loads, and what 200 sessions that poll cost the lookups.
 */
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ConsoleStore } from '../../src/console/store/store.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import type { ServedInstallation } from '../../tools/chaos/served-installation.ts';
import { freePort } from '../../tools/free-port.ts';
import { domainOf } from '../../tools/installation.ts';
import { cpuUsOf, createBenchInstallation, LoadGenerator } from '../forked.ts';
import { type BenchReport, type Cell, median, type Workload } from '../workload.ts';

const DECISIONS = 1_000_000;
const USAGE_DAYS = 400;
const VISITS = 15;
const SESSIONS = 200;
/** As often as a page renews itself. */
const POLL_MS = 10_000;
const ROUNDS = 5;
const REQUESTS = 20_000;
const CONNECTIONS = 16;
const DAY_MS = 86_400_000;
const RARE = DECISIONS / 2;

interface Row extends Readonly<Record<string, Cell>> {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit: number | null;
}

const row = (what: string, value: number, unit: string, limit: number | null): Row => ({
  what,
  value: Number(value.toPrecision(3)),
  unit,
  limit,
});

/** Half a day of decisions, a line for each 43 ms; one of them denies a domain that no other line has. */
async function writeDecisions(file: string): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  const stream = createWriteStream(file);
  const startMs = Date.now() - DAY_MS / 2;
  for (let n = 0; n < DECISIONS; n++) {
    const host = n === RARE ? 'rare.example.net' : `host-${n % 997}.example.com`;
    const line = JSON.stringify({
      time: new Date(startMs + (n * DAY_MS) / 2 / DECISIONS).toISOString(),
      id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      account: 'bench',
      method: 'GET',
      scheme: 'https',
      host,
      path: '/products/***',
      domain: host,
      found: true,
      verdict: n % 5 === 0 ? 'deny' : 'allow',
      matched: { layer: 'page_type_db', id: 'login', note: 'Where people sign in: credentials are not for agents.' },
      data: '1.0123456789ab',
      latency_ms: 0.021,
    });
    if (!stream.write(`${line}\n`)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
}

function writeUsage(file: string): void {
  const database = new Sqlite(file);
  const insert = database.prepare('INSERT OR REPLACE INTO usage_days SELECT id, ?, ? FROM accounts WHERE name = ?');
  const today = Math.floor(Date.now() / DAY_MS);
  database.transaction(() => {
    for (let age = 1; age < USAGE_DAYS; age++) insert.run(today - age, 1_000 + age, 'bench');
  })();
  database.close();
}

/** Turns the console on; returns its address. */
async function enableConsole(configFile: string): Promise<string> {
  const port = await freePort();
  const config = JSON.parse(readFileSync(configFile, 'utf8')) as object;
  writeFileSync(configFile, JSON.stringify({ ...config, console: { enabled: true, port } }));
  return `http://127.0.0.1:${port}/`;
}

/** Cookies of sessions, of as many users as that takes. */
function signIn(file: string, count: number): string[] {
  const store = new ConsoleStore(file);
  const cookies = Array.from({ length: count }, (_, i) => {
    const name = `user-${i % 20}`;
    if (i < 20) store.users.add(name, 'viewer', 'bench');
    const token = store.sessions.begin({ role: 'viewer', name, keyId: null, address: 'bench' });
    return `__Host-pagegate=${token}`;
  });
  store.close();
  return cookies;
}

interface Visited {
  readonly ms: number;
  readonly text: string;
  /** Otherwise it was asked to come again. */
  readonly isServed: boolean;
}

async function visit(url: string, cookie: string): Promise<Visited> {
  const startedMs = performance.now();
  const response = await fetch(url, { headers: { cookie, 'x-pagegate-renew': '1' } });
  const text = await response.text();
  if (response.status !== 200 && response.status !== 503) throw new Error(`${url} answers ${response.status}`);
  return { ms: performance.now() - startedMs, text, isServed: response.status === 200 };
}

/** Milliseconds until the first line of a filtered page, and until its end. */
async function filtered(url: string, cookie: string): Promise<{ readonly firstMs: number; readonly allMs: number }> {
  const startedMs = performance.now();
  const response = await fetch(url, { headers: { cookie } });
  let [text, firstMs] = ['', Number.NaN];
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (Number.isNaN(firstMs) && text.includes('<tr><td>')) firstMs = performance.now() - startedMs;
  }
  return { firstMs, allMs: performance.now() - startedMs };
}

async function pageRows(url: string, cookie: string, log: (line: string) => void): Promise<Row[]> {
  const pages = [
    '',
    'decisions',
    `try?url=${domainOf(7)}`,
    'accounts',
    'accounts/bench?days=400',
    'generations',
    'health',
    'audit',
  ];
  const rows: Row[] = [];
  for (const path of pages) {
    log(`page /${path}`);
    const samples: number[] = [];
    for (let i = 0; i <= VISITS; i++) {
      const { ms } = await visit(url + path, cookie);
      if (i > 0) samples.push(ms);
    }
    rows.push(row(`page /${path}`, median(samples), 'ms', 100));
  }
  for (const [name, query] of [
    ['denials', 'verdict=deny'],
    ['one line of a million, in the middle', 'domain=rare.example.net'],
  ] as const) {
    const samples = [];
    for (let i = 0; i < 5; i++) samples.push(await filtered(`${url}decisions?${query}`, cookie));
    rows.push(row(`filter, ${name}: first line`, median(samples.map(({ firstMs }) => firstMs)), 'ms', 1_000));
    rows.push(row(`filter, ${name}: whole page`, median(samples.map(({ allMs }) => allMs)), 'ms', null));
  }
  const { text } = await visit(url, cookie);
  const assets = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
  let sizeBytes = 0;
  for (const path of assets)
    sizeBytes += gzipSync(await (await fetch(new URL(path, url))).bytes(), { level: 9 }).length;
  rows.push(row('assets of a page, compressed', sizeBytes / 1_000, 'kB', 60));
  return rows;
}

/** Polls as open pages do, evenly spread, until it is stopped. */
function poll(url: string, cookies: readonly string[]): () => Promise<number> {
  let [isOver, answered] = [false, 0];
  const pages = ['', 'health', 'decisions?live=1', 'generations'];
  const all = cookies.map(async (cookie, i) => {
    await sleep((POLL_MS * i) / cookies.length);
    for (let n = i; !isOver; n++) {
      const startedMs = performance.now();
      const { isServed } = await visit(url + pages[n % pages.length]!, cookie);
      if (isServed) answered += 1;
      for (; !isOver && performance.now() - startedMs < POLL_MS; ) await sleep(50);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(all);
    return answered;
  };
}

async function lookupRows(
  installation: ServedInstallation,
  key: string,
  url: string,
  cookies: readonly string[],
  log: (line: string) => void,
): Promise<Row[]> {
  const requestsFile = join(installation.root, 'requests.txt');
  writeFileSync(requestsFile, Array.from({ length: 1_000 }, (_, i) => `/api/check?url=${domainOf(i)}\n`).join(''));
  const load = new LoadGenerator();
  const target = { port: installation.port, requestsFile, keys: [key] };
  const [worker = 0] = installation.workers;
  const round = async (): Promise<number> => {
    let before = 0;
    const report = await load.run(target, CONNECTIONS, { requests: REQUESTS, durationMs: 60_000 }, () => {
      before = cpuUsOf(worker);
    });
    return (cpuUsOf(worker) - before) / report.answered;
  };
  const samples: { readonly alone: number; readonly polled: number }[] = [];
  let polls = 0;
  for (let i = 0; i <= ROUNDS; i++) {
    log(`lookups, round ${i} of ${ROUNDS}`);
    const alone = await round();
    const stop = poll(url, cookies);
    const polled = await round();
    polls += await stop();
    if (i > 0) samples.push({ alone, polled });
  }
  await load.stop();
  return [
    row('CPU of a lookup, no console session', median(samples.map(({ alone }) => alone)), 'µs', null),
    row(`CPU of a lookup, ${SESSIONS} sessions polling`, median(samples.map(({ polled }) => polled)), 'µs', null),
    row('ratio, median of rounds', median(samples.map(({ alone, polled }) => polled / alone)), '×', null),
    row('pages served meanwhile', polls, 'pages', null),
  ];
}

async function run({ log }: { readonly log: (line: string) => void }): Promise<BenchReport> {
  const { installation, key } = await createBenchInstallation(1);
  try {
    const state = join(installation.root, 'state');
    const url = await enableConsole(installation.configFile);
    const cookies = signIn(join(state, 'console/console.sqlite'), SESSIONS);
    log(`writing ${DECISIONS.toLocaleString('en-US')} decisions`);
    await writeDecisions(join(state, 'log/decisions-0.ndjson'));
    writeUsage(installation.ledgerFile);
    await installation.start();
    for (let tries = 0; tries < 600; tries++) {
      if (
        await fetch(`${url}sign-in`).then(
          () => true,
          () => false,
        )
      )
        break;
      await sleep(100);
    }
    const pages = await pageRows(url, cookies[0]!, log);
    return { rows: [...pages, ...(await lookupRows(installation, key, url, cookies, log))], notes: NOTES };
  } finally {
    await installation.remove();
  }
}

const NOTES = [
  'Pages are medians of visits one after the other over loopback, the first left out. Where a limit stands, it is the one that the console is built to.',
  'The log of decisions is one file of about 400 MB; a filter reads it from its end, so that what is rare and old comes late.',
  'CPU is that of the one worker process, a request; rounds with and without sessions take turns.',
];

/** What `bench/run.ts` looks for. */
export const workload: Workload = {
  name: 'console',
  description: 'pages, filters and assets of the console, and what 200 polling sessions cost the lookups',
  run,
};
