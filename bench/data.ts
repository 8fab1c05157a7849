/** Creates the dataset and the index of a bench if they do not exist yet. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Dataset } from '../tools/dataset/parts.ts';
import { partsOf } from './drop-lines.ts';
import type { BenchOptions } from './workload.ts';

const SEED = 1;

/** The checkout of this bench. */
export const CHECKOUT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

const SAMPLE_DROP = fileURLToPath(new URL('../data/sample', import.meta.url));
/** The part of the sample drop whose records have pages. */
export const SAMPLE_PART = 'with-pages.ndjson.zst';

/** Returns the generator of the dataset, which yields the names of records and names that no record has. */
export function datasetOf(records: number): Dataset {
  return new Dataset({ records, seed: SEED, dirt: 0, compression: 'none' });
}

/** Returns the folder of a drop with `records` records. With `dirt`, that share of its lines is invalid or a duplicate. */
export function ensureDrop({ records, dir, log }: BenchOptions, dirt = 0): string {
  const drop = join(dir, `${dirt === 0 ? '' : 'dirty-'}drop-${records}`);
  if (existsSync(drop)) return drop;
  log(`generating ${records.toLocaleString('en-US')} records`);
  const unfinished = `${drop}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  const args = ['--records', String(records), '--seed', String(SEED), '--dirt', String(dirt), '--out', unfinished];
  node('tools/dataset/generate.ts', args);
  renameSync(unfinished, drop);
  return drop;
}

/** Returns the path of the index of that drop. */
export function ensureIndex(options: BenchOptions): string {
  const index = join(options.dir, `index-${options.records}.pgx`);
  if (existsSync(index)) return index;
  const drop = ensureDrop(options);
  options.log('building the index');
  node('src/cli.ts', ['build', drop, '--out', index, '--no-rejects']);
  return index;
}

/** Returns the folder of a drop with the generated records followed by those of the sample drop that have pages. */
function ensureServedDrop(options: BenchOptions): string {
  const drop = join(options.dir, `served-drop-${options.records}`);
  if (existsSync(drop)) return drop;
  const generated = ensureDrop(options);
  const unfinished = `${drop}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished);
  const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const manifest = manifestOf(generated);
  const sample = manifestOf(SAMPLE_DROP).files.filter(({ name }) => name === SAMPLE_PART);
  for (const { name } of manifest.files) linkSync(join(generated, name), join(unfinished, name));
  copyFileSync(join(SAMPLE_DROP, SAMPLE_PART), join(unfinished, SAMPLE_PART));
  const files = [...manifest.files, ...sample];
  writeFileSync(join(unfinished, 'manifest.json'), JSON.stringify({ ...manifest, files }));
  renameSync(unfinished, drop);
  return drop;
}

interface Manifest {
  readonly files: readonly { readonly name: string }[];
}

/** Returns the index for the servers of the benches. The program of the checkout builds it, because versions differ in their index format. */
export function ensureServedIndex(options: BenchOptions, checkout: string): string {
  const version = createHash('sha256').update(checkout).digest('hex').slice(0, 8);
  const index = join(options.dir, `served-${options.records}-${version}.pgx`);
  if (existsSync(index)) return index;
  const drop = ensureServedDrop(options);
  options.log(`building the index with ${checkout}`);
  const args = ['build', drop, '--out', index, '--no-rejects'];
  execFileSync(join(checkout, 'src/pagegate'), args, { stdio: ['ignore', 'ignore', 'inherit'] });
  return index;
}

/** Returns the total size of a drop's uncompressed parts, in bytes. */
export function ndjsonSize(drop: string): number {
  return partsOf(drop).reduce((sum, path) => sum + statSync(path).size, 0);
}

/** Runs one of our programs to its end. Returns its standard output. */
export function node(script: string, args: readonly string[], flags: readonly string[] = []): string {
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url));
  return execFileSync(process.execPath, [...flags, path, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
}

/** Runs a trial in a separate process. Returns the JSON document that it prints. */
export function trial<T>(name: string, args: readonly (string | number)[], flags: readonly string[] = []): T {
  return JSON.parse(node(`bench/trials/${name}.ts`, args.map(String), flags)) as T;
}
