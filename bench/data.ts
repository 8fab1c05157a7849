/** The dataset and the index of a bench, made when they are not there yet. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Dataset } from '../tools/dataset/parts.ts';
import type { BenchOptions } from './workload.ts';

export const SEED = 1;

/** The dataset's generator: names of records, and names that no record has. */
export function datasetOf(records: number): Dataset {
  return new Dataset({ records, seed: SEED, dirt: 0, compression: 'none' });
}

/** The folder of the drop with so many records. */
export function ensureDrop({ records, dir, log }: BenchOptions): string {
  const drop = join(dir, `drop-${records}`);
  if (existsSync(drop)) return drop;
  log(`generating ${records.toLocaleString('en-US')} records`);
  const unfinished = `${drop}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  node('tools/dataset/generate.ts', ['--records', String(records), '--seed', String(SEED), '--out', unfinished]);
  renameSync(unfinished, drop);
  return drop;
}

/** The index of that drop. */
export function ensureIndex(options: BenchOptions): string {
  const index = join(options.dir, `index-${options.records}.pgx`);
  if (existsSync(index)) return index;
  const drop = ensureDrop(options);
  options.log('building the index');
  node('src/cli.ts', ['build', drop, '--out', index, '--no-rejects']);
  return index;
}

/** Bytes of a folder's NDJSON files. */
export function ndjsonSize(drop: string): number {
  const parts = readdirSync(drop).filter((name) => name.endsWith('.ndjson'));
  return parts.reduce((sum, name) => sum + statSync(join(drop, name)).size, 0);
}

/** Runs one of our programs to its end; its standard output is returned. */
export function node(script: string, args: readonly string[], flags: readonly string[] = []): string {
  const path = new URL(`../${script}`, import.meta.url).pathname;
  return execFileSync(process.execPath, [...flags, path, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
}

/** Runs a trial in a process of its own; it prints one JSON document. */
export function trial<T>(name: string, args: readonly (string | number)[], flags: readonly string[] = []): T {
  return JSON.parse(node(`bench/trials/${name}.ts`, args.map(String), flags)) as T;
}

/** A random generator with a seed (mulberry32): whole numbers below a bound. */
export function randomBelow(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return Math.floor((((value ^ (value >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}
