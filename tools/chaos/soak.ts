/**
 * `make soak`: a real server under mixed load over TLS for a quarter of an hour, while the index is refreshed, certificate and key are
 * rotated and workers are killed. Every answer is checked; memory and latency are sampled.
 *
 *   node tools/chaos/soak.ts [--minutes 15] [--workers 2] [--clients 8] [--json FILE]
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createDeployment, type Deployment, PAGEGATE } from '../../test/refresh/deployment.ts';
import { createCertificate } from '../../test/support/certificate.ts';
import { freePort } from '../free-port.ts';
import { SoakClients } from './soak-clients.ts';

const DOMAINS = 5_000;
const EVENT_EVERY_MS = 7_000;
const SAMPLE_EVERY_MS = 15_000;

interface Sample {
  readonly seconds: number;
  /** Proportional memory of the server's processes; what they share is counted once. */
  readonly memoryMb: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface SoakReport {
  readonly minutes: number;
  readonly requests: number;
  readonly answered: number;
  /** Requests whose connection a killed worker took along. */
  readonly cut: number;
  readonly wrong: number;
  readonly examples: readonly string[];
  readonly events: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
  /** Lookups charged beyond the answers read; at most those that were cut. */
  readonly surplusCharges: number;
  readonly samples: readonly Sample[];
}

/** Files are replaced by renaming, so that the server never reads half a certificate. */
function writeCertificate(place: Deployment, count: number): void {
  const { certificate, key } = createCertificate(`soak-${count}`);
  for (const [name, text] of [
    ['tls.key', key],
    ['tls.crt', certificate],
  ] as const) {
    const path = join(place.root, name);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

/** The processes of the server: the one started, and its children, theirs … */
function processTree(pid: number): number[] {
  const children = existsSync(`/proc/${pid}/task`)
    ? readdirSync(`/proc/${pid}/task`).flatMap((task) =>
        readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
      )
    : [];
  return [pid, ...children.flatMap(processTree)];
}

function memoryMb(pid: number): number {
  let kb = 0;
  for (const member of processTree(pid)) {
    try {
      kb += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${member}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // A process that ended between the listing and the reading has no memory any more.
    }
  }
  return kb / 1024;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** One run of the soak: the server, its clients, and what happens to them. */
class Soak {
  readonly place: Deployment;
  readonly clients: SoakClients;
  readonly server: ChildProcess;
  readonly events: Record<string, number> = { refresh: 0, certificate: 0, key: 0, kill: 0 };
  readonly failures: string[] = [];
  readonly samples: Sample[] = [];
  #revision = 1;

  constructor(place: Deployment, clients: SoakClients, server: ChildProcess) {
    this.place = place;
    this.clients = clients;
    this.server = server;
  }

  async refresh(): Promise<void> {
    const next = this.#revision + 1;
    const drop = this.place.drop(`r${next}`, { revision: next, domains: DOMAINS });
    this.clients.allowed = [this.#revision, next];
    await this.#mustSucceed('refresh', drop, '--keep', '2');
    await this.#untilWorkersServe(next);
    this.#revision = next;
    this.clients.allowed = [next];
  }

  async certificate(): Promise<void> {
    writeCertificate(this.place, this.events['certificate']! + 1);
    await this.#mustSucceed('reload');
  }

  async key(): Promise<void> {
    await this.#mustSucceed('key', 'rotate', 'soak', '--overlap', '60s');
    this.clients.key = await this.readKey();
  }

  async kill(random: () => number): Promise<void> {
    const status = await this.place.pagegate('status');
    const workers = status.json.workers ?? [];
    const victim = workers[Math.floor(random() * workers.length)];
    if (victim === undefined) this.failures.push(`no worker to kill: ${status.stderr}`);
    else {
      this.clients.cutsExpected = true;
      process.kill(victim.pid, 'SIGKILL');
      await sleep(2_000);
      this.clients.cutsExpected = false;
    }
  }

  async readKey(): Promise<string> {
    const { json, stderr } = await this.place.pagegate('key', 'show', 'soak');
    if (json.key === undefined) throw new Error(`no key: ${stderr}`);
    return json.key;
  }

  sample(seconds: number, intervalSeconds: number): void {
    const latencies = this.clients.takeLatencies().sort((a, b) => a - b);
    this.samples.push({
      seconds: Math.round(seconds),
      memoryMb: Math.round(memoryMb(this.server.pid!)),
      requestsPerSecond: Math.round(latencies.length / intervalSeconds),
      p50Ms: Number(percentile(latencies, 0.5).toFixed(2)),
      p99Ms: Number(percentile(latencies, 0.99).toFixed(2)),
    });
  }

  async #mustSucceed(...args: string[]): Promise<void> {
    const { code, stderr } = await this.place.pagegate(...args);
    if (code !== 0) this.failures.push(`pagegate ${args[0]}: exit code ${code}: ${stderr.slice(0, 300)}`);
  }

  async #untilWorkersServe(revision: number): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const { json } = await this.place.pagegate('status');
      const workers = json.workers ?? [];
      if (workers.every((worker) => Number(String(worker.data ?? '').split('.')[0]) >= revision)) return;
      await sleep(100);
    }
    this.failures.push(`not every worker serves revision ${revision}`);
  }
}

async function startServer(place: Deployment, port: number, workers: number): Promise<ChildProcess> {
  const args = ['serve', '--config', place.configFile, '--port', String(port), '--admin-port', '0'];
  const child = spawn(PAGEGATE, [...args, '--workers', String(workers), '--burst-exempt', '127.0.0.1'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    log = (log + chunk).slice(-4_000);
  });
  for (let attempt = 0; attempt < 300 && child.exitCode === null; attempt += 1) {
    const { code } = await place.pagegate('status');
    if (code === 0) return child;
    await sleep(100);
  }
  child.kill('SIGKILL');
  throw new Error(`the server did not start:\n${log}`);
}

/** Lets things happen one after the other until the time is over. */
async function disturb(soak: Soak, until: number, onSample: (sample: Sample) => void): Promise<void> {
  const started = Date.now();
  let sampled = started;
  for (let turn = 0; Date.now() < until; turn += 1) {
    const name = (['refresh', 'certificate', 'key', 'kill'] as const)[turn % 4]!;
    await (name === 'kill' ? soak.kill(Math.random) : soak[name]());
    soak.events[name]! += 1;
    await sleep(Math.max(0, Math.min(EVENT_EVERY_MS, until - Date.now())));
    if (Date.now() - sampled >= SAMPLE_EVERY_MS) {
      soak.sample((Date.now() - started) / 1_000, (Date.now() - sampled) / 1_000);
      sampled = Date.now();
      onSample(soak.samples.at(-1)!);
    }
  }
}

export async function runSoak(
  options: { readonly minutes: number; readonly workers: number; readonly clients: number },
  onSample: (sample: Sample) => void,
): Promise<SoakReport> {
  const place = createDeployment({ config: { tls: { certificate_file: 'tls.crt', key_file: 'tls.key' } } });
  let server: ChildProcess | undefined;
  let clients: SoakClients | undefined;
  try {
    writeCertificate(place, 0);
    await place.pagegate('account', 'create', 'soak');
    await place.pagegate(
      'account',
      'subscribe',
      'soak',
      '--plan',
      'custom',
      '--limit',
      '1000000000',
      '--reference',
      'S',
    );
    const first = await place.pagegate('refresh', place.drop('r1', { revision: 1, domains: DOMAINS }));
    if (first.code !== 0) throw new Error(`the first refresh failed: ${first.stderr}`);
    const port = await freePort();
    server = await startServer(place, port, options.workers);
    clients = new SoakClients(port, DOMAINS);
    const soak = new Soak(place, clients, server);
    clients.key = await soak.readKey();
    clients.allowed = [1];
    const running = clients.run(options.clients);
    await disturb(soak, Date.now() + options.minutes * 60_000, onSample);
    clients.stop();
    await running;
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    await ended;
    const shown = await place.pagegate('account', 'show', 'soak');
    const { requests, answered, cut, wrong, examples } = clients;
    const surplusCharges = Number(shown.json.quota_used) - answered;
    const { events, failures, samples } = soak;
    return {
      minutes: options.minutes,
      requests,
      answered,
      cut,
      wrong,
      examples,
      events,
      failures,
      surplusCharges,
      samples,
    };
  } finally {
    clients?.stop();
    if (server !== undefined && server.exitCode === null) server.kill('SIGKILL');
    place.remove();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '15' },
      workers: { type: 'string', default: '2' },
      clients: { type: 'string', default: '8' },
      json: { type: 'string' },
    },
  });
  const [minutes, workers, clients] = [values.minutes, values.workers, values.clients].map(Number);
  const show = (s: Sample): void =>
    void process.stdout.write(
      `${String(s.seconds).padStart(5)} s  ${s.memoryMb} MB  ${s.requestsPerSecond}/s  p50 ${s.p50Ms} ms  p99 ${s.p99Ms} ms\n`,
    );
  const report = await runSoak({ minutes: minutes!, workers: workers!, clients: clients! }, show);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  const { samples: _, ...summary } = report;
  process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
  const charged = report.surplusCharges >= 0 && report.surplusCharges <= report.cut;
  process.exitCode = report.wrong === 0 && report.failures.length === 0 && charged && report.answered > 0 ? 0 : 1;
}

if (import.meta.main) await main();
