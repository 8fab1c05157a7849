/**
 * `make soak`: a real server under mixed load over TLS for 15 minutes, while the index is refreshed, certificate and API key are
 * rotated, and workers are killed. Every answer is checked; memory and latency are sampled.
 */
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { createCertificate } from '../certificate.ts';
import { createInstallation, type Installation } from '../installation.ts';
import { readOptions, refuse, wholeNumber } from '../options.ts';
import { memoryMb, processTree } from './leftovers.ts';
import { readKey, type Served, withClients } from './refresh-clients.ts';

const USAGE = 'Usage: node tools/chaos/soak.ts [--minutes 15] [--workers 2] [--clients 8]';
const ACCOUNT = 'soak';
const DOMAINS = 5_000;
const EVENT_EVERY_MS = 7_000;
const SAMPLE_EVERY_MS = 15_000;

interface Sample {
  readonly seconds: number;
  /** Memory of the server's processes; memory that they share is counted once. */
  readonly memoryMb: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface SoakOptions {
  readonly minutes: number;
  readonly workers: number;
  readonly clients: number;
  readonly onSample: (sample: Sample) => void;
}

export interface SoakReport {
  readonly minutes: number;
  readonly requests: number;
  readonly answered: number;
  /** Number of requests that were cut because a worker was killed. */
  readonly cut: number;
  readonly wrong: number;
  readonly examples: readonly string[];
  readonly events: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
  /** Lookups charged beyond the answers read; at most those that were cut. */
  readonly surplusCharges: number;
  readonly samples: readonly Sample[];
}

/** Writes a new key and certificate. Files are replaced by renaming, so that the server never reads half a certificate. */
function writeCertificate(place: Installation, name: string): void {
  const { certificate, key } = createCertificate(name);
  for (const [file, text] of [
    ['tls.key', key],
    ['tls.crt', certificate],
  ] as const) {
    const path = join(place.root, file);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

/** Returns the common name of the certificate that the server sends on a new connection. */
async function certificateName(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(30_000) });
    return String(socket.getPeerCertificate().subject.CN);
  } finally {
    socket.destroy();
  }
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** One run of the soak: the server, its clients, and what happens to them. */
class Soak {
  readonly events: Record<string, number> = { refresh: 0, certificate: 0, key: 0, kill: 0 };
  readonly failures: string[] = [];
  readonly samples: Sample[] = [];
  readonly #place: Installation;
  readonly #clients: Served['clients'];
  readonly #server: Served['server'];
  readonly #workers: number;
  #revision = 1;

  constructor(place: Installation, { clients, server }: Served, workers: number) {
    this.#place = place;
    this.#clients = clients;
    this.#server = server;
    this.#workers = workers;
  }

  async refresh(): Promise<void> {
    const next = this.#revision + 1;
    const drop = this.#place.drop(`r${next}`, { revision: next, domains: DOMAINS });
    this.#clients.allowed = [this.#revision, next];
    await this.#mustSucceed('refresh', drop, '--keep', '2');
    await this.#untilWorkersServe(next);
    this.#revision = next;
    this.#clients.allowed = [next];
  }

  async certificate(): Promise<void> {
    const name = `soak-${this.events['certificate']! + 1}`;
    writeCertificate(this.#place, name);
    await this.#mustSucceed('reload');
    // Connections are distributed to the workers at random. With this many, each worker most probably gets one.
    const shown = await Promise.all(Array.from({ length: 16 }, () => certificateName(this.#clients.port)));
    if (shown.some((each) => each !== name)) this.failures.push(`after the reload to ${name}, it shows ${shown}`);
  }

  async key(): Promise<void> {
    await this.#mustSucceed('key', 'rotate', ACCOUNT, '--overlap', '60s');
    const key = await readKey(this.#place, ACCOUNT);
    if (key === this.#clients.key) this.failures.push('the key after a rotation is the one before');
    this.#clients.key = key;
  }

  async kill(random: () => number): Promise<void> {
    const status = await this.#place.pagegate('status');
    const workers = status.json.workers ?? [];
    const victim = workers[Math.floor(random() * workers.length)];
    if (victim === undefined) this.failures.push(`no worker to kill: ${status.stderr}`);
    else {
      this.#clients.cutsExpected = true;
      process.kill(victim.pid, 'SIGKILL');
      await sleep(2_000);
      this.#clients.cutsExpected = false;
      await this.#untilWorkersServe(this.#revision);
    }
  }

  sample(seconds: number, intervalSeconds: number): void {
    const latencies = this.#clients.takeLatencies().sort((a, b) => a - b);
    this.samples.push({
      seconds: Math.round(seconds),
      memoryMb: memoryMb(processTree(this.#server.pid)),
      requestsPerSecond: Math.round(latencies.length / intervalSeconds),
      p50Ms: Number(percentile(latencies, 0.5).toFixed(2)),
      p99Ms: Number(percentile(latencies, 0.99).toFixed(2)),
    });
  }

  async #mustSucceed(...args: string[]): Promise<void> {
    const { code, stderr } = await this.#place.pagegate(...args);
    if (code !== 0) this.failures.push(`pagegate ${args[0]}: exit code ${code}: ${stderr.slice(0, 300)}`);
  }

  async #untilWorkersServe(revision: number): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const { json } = await this.#place.pagegate('status');
      const workers = json.workers ?? [];
      const serving = workers.filter((worker) => Number(String(worker.data ?? '').split('.')[0]) >= revision);
      if (serving.length === this.#workers) return;
      await sleep(100);
    }
    this.failures.push(`not every worker serves revision ${revision}`);
  }
}

/** Causes one event after the other until the time is over, and takes samples. */
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

async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const place = createInstallation({ config: { tls: { certificate_file: 'tls.crt', key_file: 'tls.key' } } });
  writeCertificate(place, 'soak-0');
  const clients = { account: ACCOUNT, workers: options.workers, domains: DOMAINS, isTls: true };
  return await withClients(place, clients, (served) => runEvents(place, served, options));
}

async function runEvents(place: Installation, served: Served, options: SoakOptions): Promise<SoakReport> {
  const { server, clients } = served;
  const { minutes, workers, clients: count, onSample } = options;
  const soak = new Soak(place, served, workers);
  const { events, failures, samples } = soak;
  const running = clients.run(count);
  await disturb(soak, Date.now() + minutes * 60_000, onSample);
  clients.stop();
  await running;
  const end = await server.stop();
  if (end !== '') failures.push(end);
  const shown = await place.pagegate('account', 'show', ACCOUNT);
  const { requests, answered, cut, wrong, examples } = clients;
  const surplusCharges = Number(shown.json.quota_used) - answered;
  if (!(surplusCharges >= 0 && surplusCharges <= cut))
    failures.push(`${shown.json.quota_used} charged for ${answered} answers and ${cut} cut connections`);
  if (answered === 0) failures.push('nothing was served');
  // A killed worker cuts each client's request in flight, and perhaps the next one, which reached its socket before that was closed. Other
  // workers are not affected.
  if (workers > 1 && cut > 2 * count * events['kill']!)
    failures.push(`${cut} connections of ${count} clients were cut by ${events['kill']} kills`);
  return { minutes, requests, answered, cut, wrong, examples, events, failures, surplusCharges, samples };
}

async function main(): Promise<void> {
  const { values } = await readOptions(USAGE, { minutes: '15', workers: '2', clients: '8' });
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes < Number.POSITIVE_INFINITY))
    refuse(`--minutes must be a number above 0: '${values.minutes}' is not.`);
  const workers = wholeNumber(values, 'workers', 1);
  const clients = wholeNumber(values, 'clients', 1);
  const onSample = (s: Sample): void =>
    void process.stdout.write(
      `${String(s.seconds).padStart(5)} s  ${s.memoryMb} MB  ${s.requestsPerSecond}/s  p50 ${s.p50Ms} ms  p99 ${s.p99Ms} ms\n`,
    );
  const report = await runSoak({ minutes, workers, clients, onSample });
  const { samples: _, ...summary } = report;
  process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
  process.exitCode = report.wrong === 0 && report.failures.length === 0 ? 0 : 1;
}

if (import.meta.main) await main();
