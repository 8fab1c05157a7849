/**
 * `npm run bench -- console`: how long each page takes with 400 days of usage and a million logged decisions, when the first lines of a filter
 * appear, what a page loads, and how much 200 polling sessions slow down lookups.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { ConsoleStore } from '../../src/console/store/store.ts';
import { freePort } from '../../tools/free-port.ts';
import { domainOf } from '../../tools/installation.ts';
import { visit } from '../console/browser-visit.ts';
import {
  ACCOUNTS,
  DECISIONS,
  RARE_DOMAIN,
  signIn,
  writeAccounts,
  writeDecisions,
  writeSeries,
} from '../console/fill.ts';
import { measurePolling, type PollingReport } from '../console/polling.ts';
import { createBenchInstallation } from '../forked-servers.ts';
import { type BenchReport, type Cell, median, type Workload } from '../workload.ts';

const VISITS = 15;
const SEARCHES = 5;
const SESSIONS = 200;
const PAGE_MS = 100;
const FIRST_LINE_MS = 1_000;
const ASSETS_KB = 60;
const START_TRIES = 600;
const PAGES = [
  '',
  '?range=quarter',
  'decisions',
  `try?url=${domainOf(7)}`,
  'accounts',
  'accounts/bench?days=400',
  'generations',
  'health',
  'audit',
];

interface Row extends Readonly<Record<string, Cell>> {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit: number | null;
  /** The value divided by its limit; above 1, the limit is exceeded. */
  readonly 'of limit': number | null;
}

function row(what: string, value: number, unit: string, limit: number | null = null): Row {
  const short = (number: number): number => Number(number.toPrecision(3));
  return { what, value: short(value), unit, limit, 'of limit': limit === null ? null : short(value / limit) };
}

/** Turns the console on. Returns its URL. */
async function enableConsole(configFile: string): Promise<string> {
  const port = await freePort();
  const config = JSON.parse(readFileSync(configFile, 'utf8')) as object;
  writeFileSync(configFile, JSON.stringify({ ...config, console: { enabled: true, port } }));
  return `http://127.0.0.1:${port}/`;
}

interface SearchTimes {
  /** Time until the page shows the progress of the search or a line. */
  readonly wordMs: number;
  /** Time until the page shows the first decision. */
  readonly lineMs: number;
  readonly allMs: number;
}

async function filtered(url: string, cookie: string): Promise<SearchTimes> {
  const startedMs = performance.now();
  const response = await fetch(url, { headers: { cookie } });
  let [text, wordMs, lineMs] = ['', Number.NaN, Number.NaN];
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (Number.isNaN(wordMs) && /<tr(?: class="searched")?><td/.test(text)) wordMs = performance.now() - startedMs;
    if (Number.isNaN(lineMs) && text.includes('<tr><td>')) lineMs = performance.now() - startedMs;
  }
  return { wordMs, lineMs, allMs: performance.now() - startedMs };
}

async function pageRows(url: string, cookie: string, log: (line: string) => void): Promise<Row[]> {
  const rows: Row[] = [];
  const firsts: number[] = [];
  for (const path of PAGES) {
    log(`page /${path}`);
    const samples: number[] = [];
    for (let i = 0; i <= VISITS; i++) {
      const { ms } = await visit(url + path, cookie);
      (i === 0 ? firsts : samples).push(ms);
    }
    rows.push(row(`page /${path}`, median(samples), 'ms', PAGE_MS));
  }
  // Nothing is cached yet, and no code is compiled: this is the wait of the first user after a start.
  rows.push(row('the slowest first visit of a page', Math.max(...firsts), 'ms'));
  return rows;
}

async function searchRows(url: string, cookie: string, logFile: string, log: (line: string) => void): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, query] of [
    ['denials', 'verdict=deny'],
    [`one line of ${DECISIONS.toLocaleString('en-US')}, in the middle`, `domain=${RARE_DOMAIN}`],
    ['two common things that no line has both', 'verdict=deny&account=odd'],
  ] as const) {
    log(`filter, ${name}`);
    const times: SearchTimes[] = [];
    for (let i = 0; i < SEARCHES; i++) times.push(await filtered(`${url}decisions?${query}`, cookie));
    const middle = (pick: (one: SearchTimes) => number): number => median(times.map(pick));
    rows.push(
      row(
        `filter, ${name}: first word of it`,
        middle(({ wordMs }) => wordMs),
        'ms',
        FIRST_LINE_MS,
      ),
    );
    if (!Number.isNaN(times[0]!.lineMs))
      rows.push(
        row(
          `filter, ${name}: first line`,
          middle(({ lineMs }) => lineMs),
          'ms',
          FIRST_LINE_MS,
        ),
      );
    rows.push(
      row(
        `filter, ${name}: whole page`,
        middle(({ allMs }) => allMs),
        'ms',
      ),
    );
  }
  const peer: number[] = [];
  for (let i = 0; i < SEARCHES; i++) {
    const startedMs = performance.now();
    await promisify(execFile)('grep', ['-F', '-c', RARE_DOMAIN, logFile], { env: { LC_ALL: 'C' } });
    peer.push(performance.now() - startedMs);
  }
  rows.push(row('the same one line with grep, whole file', median(peer), 'ms'));
  return rows;
}

async function assetRow(url: string, cookie: string): Promise<Row> {
  const { text } = await visit(url, cookie);
  const assets = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
  let sizeBytes = 0;
  for (const path of assets)
    sizeBytes += gzipSync(await (await fetch(new URL(path, url))).bytes(), { level: 9 }).length;
  return row('assets of a page, compressed', sizeBytes / 1_000, 'kB', ASSETS_KB);
}

const pollingRows = (found: PollingReport): Row[] => [
  row('processor time of a lookup, no session', found.aloneUs, 'µs'),
  row(`the same, ${SESSIONS} sessions polling`, found.polledUs, 'µs'),
  row('ratio of the two, median of rounds', found.ratio, '×'),
  row('— lowest round', found.ratios[0], '×'),
  row('— highest round', found.ratios[1], '×'),
  row('noise: no session, after against before', found.noise, '×'),
  row('— lowest round', found.noises[0], '×'),
  row('— highest round', found.noises[1], '×'),
  row('p99 of a lookup, with sessions against without', found.p99Ratio, '×'),
  row('pages served meanwhile', found.pagesPerSecond, 'pages/s'),
];

async function listening(url: string): Promise<void> {
  for (let tries = 0; tries < START_TRIES; tries++) {
    const isUp = await fetch(`${url}sign-in`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return;
    await sleep(100);
  }
  throw new Error(`The console does not answer at ${url}.`);
}

async function run({ log }: { readonly log: (line: string) => void }): Promise<BenchReport> {
  const { installation, key } = await createBenchInstallation();
  try {
    const state = join(installation.root, 'state');
    const logFile = join(state, 'log/decisions-0.ndjson');
    const url = await enableConsole(installation.configFile);
    const store = new ConsoleStore(join(state, 'console/console.sqlite'));
    const cookies = signIn(store, url, SESSIONS);
    writeSeries(store);
    store.close();
    log(`writing ${DECISIONS.toLocaleString('en-US')} decisions and ${ACCOUNTS.toLocaleString('en-US')} accounts`);
    await writeDecisions(logFile);
    writeAccounts(installation.ledgerFile);
    await installation.start();
    await listening(url);
    const rows = [
      ...(await pageRows(url, cookies[0]!, log)),
      ...(await searchRows(url, cookies[0]!, logFile, log)),
      await assetRow(url, cookies[0]!),
      ...pollingRows(await measurePolling(installation, key, url, cookies, log)),
    ];
    return { rows, notes: NOTES };
  } finally {
    await installation.remove();
  }
}

const NOTES = [
  'Pages are medians of visits one after the other over loopback, the first left out. Where a limit stands, it is the one that the console is built to.',
  'The log of decisions is one file of about 400 MB; a filter reads it from its end, so that what is rare and old comes late. Until then the page says how far it is.',
  'Processor time is that of the one worker, a request. A round is without, with, and without sessions; the noise compares its two ends. Each session asks as often as its page renews itself.',
];

/** The export that `bench/run.ts` loads. */
export const workload: Workload = {
  name: 'console',
  description: 'pages, filters and assets of the console, and what 200 polling sessions cost the lookups',
  recordsMax: 0,
  run,
};
