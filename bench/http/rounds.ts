/** Rounds of a cell of the HTTP bench: the subjects take turns, so that a slow minute of the machine falls on all of them. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leaveNothing } from '../../tools/chaos/leftovers.ts';
import type { LoadGenerator } from '../forked-servers.ts';
import type { LoadLength, LoadReport, LoadTarget } from '../load-generator.ts';
import { type Cell, median } from '../workload.ts';
import type { Subject, TlsFiles } from './compared-servers.ts';
import { cpuUsOf } from './cpu.ts';
import type { FixedAnswer } from './fixed.ts';

/** One subject in one round. */
export interface Sample {
  readonly rate: number;
  /** Processor time of all its processes for each request, in microseconds. */
  readonly cpuUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** A subject, and how it is asked. */
export interface Contender {
  readonly label: string;
  measure(): Promise<Sample>;
}

let folder: string | undefined;

/** Writes request targets where load generators read them; the file goes with the run. */
export function writeTargets(name: string, targets: readonly string[]): string {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-bench-requests-'));
    leaveNothing(folder);
  }
  const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.txt`);
  writeFileSync(file, `${targets.join('\n')}\n`);
  return file;
}

export function targetOf({ port, keys }: Subject, requestsFile: string, tls: TlsFiles | undefined): LoadTarget {
  return { port, keys, requestsFile, ...(tls === undefined ? {} : { certificate: tls.certificate }) };
}

/** Asked by our own generator. */
export async function measure(
  subject: Subject,
  load: LoadGenerator,
  target: LoadTarget,
  connections: number,
  length: LoadLength,
): Promise<Sample> {
  const pids = subject.pids();
  let beforeUs = 0;
  const report = await load.run(target, connections, length, () => {
    beforeUs = cpuUsOf(pids);
  });
  return sampleOf(report, cpuUsOf(pids) - beforeUs);
}

export function sampleOf({ answered, elapsedMs, p50Us, p99Us }: LoadReport, cpuUs: number): Sample {
  return { rate: answered / (elapsedMs / 1_000), cpuUs: cpuUs / answered, p50Us, p99Us };
}

/** The samples of each contender, round by round; each round begins with another one. */
export async function takeTurns(contenders: readonly Contender[], rounds: number): Promise<Sample[][]> {
  const samples: Sample[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const at = (round + turn) % contenders.length;
      samples[at]!.push(await contenders[at]!.measure());
    }
  }
  return samples;
}

/** A row of the table: all ratios are to the transport in the same round. */
export function rowOf(
  cell: string,
  label: string,
  own: readonly Sample[],
  fixed: readonly Sample[],
): Record<string, Cell> {
  const middle = (pick: (sample: Sample) => number): number => median(own.map(pick));
  const tail = ({ p50Us, p99Us }: Sample): number => p99Us / p50Us;
  const ratios = own.map((sample, i) => sample.cpuUs / fixed[i]!.cpuUs);
  const digits = (value: number, count: number): number => Number(value.toFixed(count));
  return {
    cell,
    server: label,
    'CPU µs': digits(
      middle(({ cpuUs }) => cpuUs),
      1,
    ),
    'CPU ÷ transport': digits(median(ratios), 2),
    least: digits(Math.min(...ratios), 2),
    most: digits(Math.max(...ratios), 2),
    'own µs': digits(median(own.map((sample, i) => sample.cpuUs - fixed[i]!.cpuUs)), 1),
    'rate /s': Math.round(middle(({ rate }) => rate)),
    'rate ÷ transport': digits(median(own.map((sample, i) => sample.rate / fixed[i]!.rate)), 2),
    'p50 µs': middle(({ p50Us }) => p50Us),
    'p99 µs': middle(({ p99Us }) => p99Us),
    'p99/p50 ÷ transport': digits(median(own.map((sample, i) => tail(sample) / tail(fixed[i]!))), 2),
  };
}

/** What a subject answers to the first of some requests. */
export interface Survey {
  readonly answer: FixedAnswer;
  /** Shares in percent. */
  readonly found: number;
  readonly verdicts: Readonly<Record<string, number>>;
}

const SURVEYED = 2_000;
const TRANSPORTS_OWN = new Set(['content-length', 'date', 'uwebsockets', 'connection', 'keep-alive']);

/** Asks requests one after the other, and says how long the answers are, what headers they have, and what they say. */
export async function survey(subject: Subject, targets: readonly string[], tls?: TlsFiles): Promise<Survey> {
  let headers: FixedAnswer['headers'] = [];
  let bytes = 0;
  let found = 0;
  const verdicts: Record<string, number> = {};
  const asked = targets.slice(0, SURVEYED);
  for (const target of asked) {
    const { body, rawHeaders } = await askOnce(subject, target, tls);
    headers = rawHeaders.filter(([name]) => !TRANSPORTS_OWN.has(name.toLowerCase()));
    bytes += Buffer.byteLength(body);
    const answer = JSON.parse(body) as { found: boolean; verdict: string };
    if (answer.found) found += 1;
    verdicts[answer.verdict] = (verdicts[answer.verdict] ?? 0) + 1;
  }
  const percent = (count: number): number => Math.round((100 * count) / asked.length);
  return {
    answer: { headers, bodySize: Math.round(bytes / asked.length) },
    found: percent(found),
    verdicts: Object.fromEntries(Object.entries(verdicts).map(([verdict, count]) => [verdict, percent(count)])),
  };
}

function askOnce(
  { port, keys }: Subject,
  path: string,
  tls: TlsFiles | undefined,
): Promise<{ body: string; rawHeaders: [string, string][] }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, headers: { 'x-api-key': keys[0] } };
    const request =
      tls === undefined ? get(options) : getTls({ ...options, ca: tls.certificate, servername: 'localhost' });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8');
        if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode} ${body}`));
        const raw = response.rawHeaders;
        const rawHeaders = Array.from({ length: raw.length / 2 }, (_, i): [string, string] => [
          raw[2 * i]!,
          raw[2 * i + 1]!,
        ]);
        resolve({ body, rawHeaders });
      });
    });
  });
}
