/**
 * `make chaos-refresh`: refreshes of a served index are ended by SIGKILL at random moments while clients ask. The server must never
 * notice, each next refresh must succeed, and prune must leave no litter.
 *
 *   node tools/chaos/refresh.ts [--kills 100] [--seed 1] [--workers 2] [--domains 2000] [--json FILE]
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openIndex } from '../../src/index/reader.ts';
import { openLedger } from '../../src/ledger/ledger.ts';
import { listGenerations, listLitter } from '../../src/refresh/store.ts';
import { createDeployment, type Deployment, domainOf, PAGEGATE, pageOf } from '../../test/refresh/deployment.ts';
import { freePort } from '../free-port.ts';

export interface ChaosOptions {
  /** Refreshes to end while they run. */
  readonly kills: number;
  readonly seed: number;
  readonly workers: number;
  readonly domains: number;
  readonly onRound?: (killed: number) => void;
}

export interface ChaosReport {
  /** Refreshes that were started to be ended; some were done before their moment came. */
  readonly rounds: number;
  /** Refreshes that were still running when they were ended. */
  readonly killed: number;
  /** Of those, how many had already switched. */
  readonly killedAfterSwitch: number;
  readonly refreshMs: number;
  readonly requests: number;
  /** Requests without an answer 200 that fits one of the two revisions in play; the first few in words. */
  readonly wrong: number;
  readonly wrongExamples: readonly string[];
  /** Rounds whose next refresh failed, or after which prune left something. */
  readonly failures: readonly string[];
}

/** A small generator of random numbers, so that a run can be repeated. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function createKey(place: Deployment): string {
  const state = join(place.root, 'state');
  const ledger = openLedger({
    file: join(state, 'ledger/ledger.sqlite'),
    keyFile: join(state, 'keys/ledger.key'),
    actor: 'chaos',
  });
  try {
    ledger.createAccount('chaos');
    const { key } = ledger.issueKey('chaos');
    ledger.subscribe('chaos', 'custom', 'chaos', 1_000_000_000);
    return key;
  } finally {
    ledger.close();
  }
}

/** Clients that ask without a pause and believe nothing. */
class Crowd {
  requests = 0;
  wrong = 0;
  readonly examples: string[] = [];
  /** Revisions that an answer may come from now. */
  allowed: readonly number[] = [];
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  readonly #options: http.RequestOptions;
  readonly #domains: number;
  readonly #random: () => number;
  #running = true;

  constructor(port: number, key: string, domains: number, random: () => number) {
    this.#options = { host: '127.0.0.1', port, agent: this.#agent, headers: { 'x-api-key': key } };
    this.#domains = domains;
    this.#random = random;
  }

  async run(): Promise<void> {
    while (this.#running) {
      const domain = domainOf(Math.floor(this.#random() * this.#domains));
      const before = this.allowed;
      const problem = await this.#ask(domain).then(
        ({ status, body }) => this.#judge(domain, status, body, [...before, ...this.allowed]),
        (error: Error) => error.message,
      );
      this.requests += 1;
      if (problem === '') continue;
      this.wrong += 1;
      if (this.examples.length < 10) this.examples.push(problem);
    }
  }

  stop(): void {
    this.#running = false;
  }

  close(): void {
    this.#agent.destroy();
  }

  #judge(domain: string, status: number, body: string, allowed: readonly number[]): string {
    if (status !== 200) return `${domain}: status ${status} ${body.slice(0, 100)}`;
    const page = (JSON.parse(body) as { page_types: Record<string, string> }).page_types['pricing'];
    return allowed.some((revision) => pageOf(domain, revision) === page)
      ? ''
      : `${domain}: ${page}, allowed ${allowed}`;
  }

  #ask(domain: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const request = http.get({ ...this.#options, path: `/api/check?domain=${domain}` }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode!, body }));
        response.on('error', reject);
      });
      request.on('error', reject);
    });
  }
}

/** The revision of the generation that `current` names; throws where that is not a sound index. */
function servedRevision(place: Deployment): number {
  const index = openIndex(join(place.store, 'current/index.pgx'));
  try {
    const { pageTypes } = index.decode(index.find(domainOf(1)));
    const { revision } = index.info;
    if (pageTypes[0]?.url !== pageOf(domainOf(1), revision)) throw new Error(`current is not revision ${revision}`);
    return revision;
  } finally {
    index.close();
  }
}

async function startServer(place: Deployment, port: number, workers: number): Promise<ChildProcess> {
  const args = ['serve', '--config', place.configFile, '--port', String(port), '--admin-port', '0'];
  const child = spawn(PAGEGATE, [...args, '--workers', String(workers), '--burst-exempt', '127.0.0.1'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    log = (log + chunk).slice(-4000);
  });
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const answered = await fetch(`http://127.0.0.1:${port}/api/check`).then(
      () => true,
      () => false,
    );
    if (answered) return child;
    if (child.exitCode !== null) break;
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`the server did not start:\n${log}`);
}

async function killOne(place: Deployment, drop: string, afterMs: number): Promise<boolean> {
  const child = spawn(PAGEGATE, ['refresh', drop, '--config', place.configFile], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  await Promise.race([sleep(afterMs), ended]);
  const wasRunning = child.exitCode === null && child.signalCode === null;
  child.kill('SIGKILL');
  await ended;
  return wasRunning && child.signalCode === 'SIGKILL';
}

/** Runs the rounds. Throws only where the run itself cannot be set up. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const random = createRandom(options.seed);
  const place = createDeployment();
  const makeDrop = (revision: number): string => place.drop(`r${revision}`, { revision, domains: options.domains });
  const failures: string[] = [];
  let rounds = 0;
  let killed = 0;
  let killedAfterSwitch = 0;
  let refreshMs = 0;
  let server: ChildProcess | undefined;
  let crowd: Crowd | undefined;
  try {
    const started = performance.now();
    const first = await place.pagegate('refresh', makeDrop(1));
    if (first.code !== 0) throw new Error(`the first refresh failed: ${first.stderr}`);
    refreshMs = performance.now() - started;
    const port = await freePort();
    const key = createKey(place);
    server = await startServer(place, port, options.workers);
    crowd = new Crowd(port, key, options.domains, createRandom(options.seed + 1));
    crowd.allowed = [1];
    const clients = [crowd.run(), crowd.run(), crowd.run(), crowd.run()];
    const roundsMax = 4 * options.kills;
    while (killed < options.kills && rounds < roundsMax) {
      rounds += 1;
      const round = rounds;
      options.onRound?.(killed);
      const revision = round + 1;
      const drop = makeDrop(revision);
      crowd.allowed = [revision - 1, revision];
      if (await killOne(place, drop, random() * refreshMs)) {
        killed += 1;
        if (servedRevision(place) === revision) killedAfterSwitch += 1;
      }
      const roundStarted = performance.now();
      const next = await place.pagegate('refresh', drop, '--keep', '2');
      if (next.json.outcome === 'activated' && next.json.reused === false) refreshMs = performance.now() - roundStarted;
      if (next.code !== 0) failures.push(`round ${round}: the next refresh: ${next.stderr}`);
      crowd.allowed = [revision];
      await place.pagegate('prune', '--keep', '2');
      const litter = listLitter(place.store);
      const kept = listGenerations(place.store).length;
      if (litter.length > 0 || kept > 2) failures.push(`round ${round}: ${kept} generations, litter ${litter}`);
      if (servedRevision(place) !== revision) failures.push(`round ${round}: revision ${revision} is not served`);
    }
    crowd.stop();
    await Promise.all(clients);
    const { requests, wrong, examples } = crowd;
    return { rounds, killed, killedAfterSwitch, refreshMs, requests, wrong, wrongExamples: examples, failures };
  } finally {
    crowd?.stop();
    crowd?.close();
    if (server !== undefined && server.exitCode === null) {
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await Promise.race([ended, sleep(10_000)]);
      server.kill('SIGKILL');
    }
    place.remove();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '2' },
      domains: { type: 'string', default: '2000' },
      json: { type: 'string' },
    },
  });
  const [kills, seed, workers, domains] = [values.kills, values.seed, values.workers, values.domains].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const onRound = (killed: number): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r${killed} of ${kills} kills`);
  };
  const report = await runChaos({ kills, seed, workers, domains, onRound });
  process.stdout.write(`\n${JSON.stringify(report, null, 2)}\n`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  if (report.wrong > 0 || report.failures.length > 0 || report.killed < kills) process.exitCode = 1;
}

if (import.meta.main) await main();
