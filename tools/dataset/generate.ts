/**
 * Generates a drop of synthetic records that look like real ones: see README.md in this folder.
 *
 *   node tools/dataset/generate.ts --records N --seed S --out DIRECTORY|-
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { EXIT } from '../../src/errors.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../../src/record/vocabulary.ts';
import { DATASET_ID, prepareFolder } from './folder.ts';
import {
  type Compression,
  DATASET_RECORDS_MAX,
  Dataset,
  type DatasetOptions,
  partCount,
  partName,
  type WrittenPart,
  writePart,
} from './parts.ts';

const USAGE = `Usage: node tools/dataset/generate.ts --records N --out DIRECTORY|- [options]
  --records N         how many records, up to ${DATASET_RECORDS_MAX.toLocaleString('en-US')}
  --out DIRECTORY     a drop: manifest.json and parts, in place of one generated there before; "-" writes NDJSON to standard output
  --seed S            another seed, other records (default 1)
  --compress HOW      none, gzip or zstd (default none)
  --dirt SHARE        share of duplicates and bad lines, 0 to 0.5 (default 0)
  --workers N         worker threads (default: one for each core); the bytes are the same
  --json              print the report as JSON
`;

interface Settings {
  readonly options: DatasetOptions;
  readonly out: string;
  readonly workers: number;
  readonly json: boolean;
}

function wholeNumber(text: string, name: string, lowest: number, highest: number): number {
  const value = Number(text.replaceAll('_', ''));
  if (!Number.isInteger(value) || value < lowest || value > highest) {
    throw new RangeError(`--${name}: expected a whole number from ${lowest} to ${highest}, got "${text}"`);
  }
  return value;
}

function readSettings(args: readonly string[]): Settings {
  const { values } = parseArgs({
    args: [...args],
    options: {
      records: { type: 'string' },
      out: { type: 'string' },
      seed: { type: 'string', default: '1' },
      compress: { type: 'string', default: 'none' },
      dirt: { type: 'string', default: '0' },
      workers: { type: 'string', default: String(availableParallelism()) },
      json: { type: 'boolean', default: false },
    },
  });
  if (values.records === undefined || values.out === undefined) throw new RangeError('--records and --out are needed');
  if (!['none', 'gzip', 'zstd'].includes(values.compress)) throw new RangeError(`--compress: got "${values.compress}"`);
  const dirt = Number(values.dirt);
  if (!(dirt >= 0 && dirt <= 0.5)) throw new RangeError(`--dirt: expected 0 to 0.5, got "${values.dirt}"`);
  const options: DatasetOptions = {
    records: wholeNumber(values.records, 'records', 1, DATASET_RECORDS_MAX),
    seed: wholeNumber(values.seed, 'seed', 0, 2 ** 31 - 1),
    dirt,
    compression: values.compress as Compression,
  };
  return { options, out: values.out, workers: wholeNumber(values.workers, 'workers', 1, 256), json: values.json };
}

function progressLine(done: number, records: number, started: number): void {
  if (!process.stderr.isTTY) return;
  const seconds = (performance.now() - started) / 1000;
  const rate = done / seconds;
  const left = rate > 0 ? Math.round((records - done) / rate) : 0;
  const percent = Math.floor((100 * done) / records);
  process.stderr.write(`\r${percent} %  ${Math.round(rate / 1000)} k records/s  ${left} s left \u001b[K`);
}

/** Writes all parts. Each worker thread takes the next free one. If one fails, the others finish their current part, then this throws. */
async function writeParts({ options, out, workers }: Settings): Promise<WrittenPart[]> {
  const parts = partCount(options.records);
  const reports = new Array<WrittenPart>(parts);
  const started = performance.now();
  let next = 0;
  let done = 0;
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { options, out } });
      const give = (): void => {
        if (next < parts) worker.postMessage(next++);
        else worker.postMessage(-1);
      };
      worker.on('message', ({ part, report }: { part: number; report: WrittenPart }) => {
        reports[part] = report;
        done += report.records;
        progressLine(done, options.records, started);
        give();
      });
      worker.once('error', (error) => {
        next = parts;
        reject(error);
      });
      worker.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
      give();
    });
  const ends = await Promise.allSettled(Array.from({ length: Math.min(workers, parts) }, work));
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return reports;
}

function writeManifest(options: DatasetOptions, out: string, reports: readonly WrittenPart[]): void {
  const manifest = {
    format: 'pagegate-drop/1',
    dataset: DATASET_ID,
    revision: 1,
    created: '2026-01-01T00:00:00Z',
    kind: 'full',
    vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION },
    page_types: 'complete',
    notice: `Made up by tools/dataset (${options.records} records, seed ${options.seed}): shaped like real data, true of nobody.`,
    files: reports.map(({ name, bytes, records, sha256 }) => ({ name, bytes, records, sha256 })),
  };
  writeFileSync(join(out, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function report(settings: Settings, reports: readonly WrittenPart[], seconds: number): void {
  const { options, json } = settings;
  const bytes = reports.reduce((sum, part) => sum + part.bytes, 0);
  const ndjsonBytes = reports.reduce((sum, part) => sum + part.ndjsonBytes, 0);
  const dirt: Record<string, number> = {};
  for (const part of reports) {
    for (const [kind, count] of Object.entries(part.dirt)) dirt[kind] = (dirt[kind] ?? 0) + count;
  }
  const facts = {
    records: options.records,
    seed: options.seed,
    parts: reports.length,
    bytes,
    ndjson_bytes: ndjsonBytes,
    ndjson_bytes_per_record: ndjsonBytes / options.records,
    seconds,
    records_per_second: Math.round(options.records / seconds),
    dirt,
  };
  if (json) process.stdout.write(`${JSON.stringify(facts)}\n`);
  else {
    const perRecord = (ndjsonBytes / options.records).toFixed(1);
    process.stderr.write(
      `${options.records.toLocaleString('en-US')} records in ${reports.length} parts, ${perRecord} bytes of NDJSON a record, ${seconds.toFixed(1)} s, into ${settings.out}\n`,
    );
  }
}

/** Prints the error in one line. */
function fail(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}

/** Writes all lines to standard output, with back-pressure. If the reader closes the pipe, ends without an error. */
async function pipeOut(options: DatasetOptions): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok);
    fail(error);
    process.exit(EXIT.environment);
  });
  const dataset = new Dataset(options);
  for (const chunk of dataset.chunks(0, options.records)) {
    if (!process.stdout.write(chunk)) await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

async function main(args: readonly string[]): Promise<void> {
  let settings: Settings;
  try {
    settings = readSettings(args);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  if (settings.out === '-') return pipeOut(settings.options);
  const { options, out } = settings;
  const started = performance.now();
  try {
    prepareFolder(
      out,
      Array.from({ length: partCount(options.records) }, (_, part) => partName(options, part)),
    );
    const reports = await writeParts(settings);
    writeManifest(options, out, reports);
    report(settings, reports, (performance.now() - started) / 1000);
  } catch (error) {
    fail(error);
    process.exitCode = EXIT.environment;
  }
}

function serveParts(): void {
  const { options, out } = workerData as { options: DatasetOptions; out: string };
  const dataset = new Dataset(options);
  parentPort?.on('message', async (part: number) => {
    if (part < 0) parentPort?.close();
    else parentPort?.postMessage({ part, report: await writePart(dataset, part, out) });
  });
}

if (!isMainThread) serveParts();
else if (import.meta.main) await main(process.argv.slice(2));
