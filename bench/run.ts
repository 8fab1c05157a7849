/** `npm run bench -- NAME [--records N] [--json FILE] [--dir DIR] [--beside CHECKOUT]`: runs one bench, prints its table, saves its results. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readOptions, refuse, wholeNumber } from '../tools/options.ts';
import { hardware } from './hardware.ts';
import { missingPeers } from './peers.ts';
import type { BenchOptions, BenchReport, Workload } from './workload.ts';

const WORKLOADS = new URL('./workloads/', import.meta.url);
const USAGE = 'Usage: npm run bench -- NAME [--records N] [--json FILE] [--dir DIR] [--beside CHECKOUT]';

/** Runs a workload. Returns its report together with the conditions of the run. */
export async function runBench(
  name: string,
  options: Omit<BenchOptions, 'log'>,
): Promise<BenchReport & Record<string, unknown>> {
  const { workload } = (await import(new URL(`${name}.ts`, WORKLOADS).href)) as { workload: Workload };
  const missing = workload.hasPeers === true ? missingPeers() : [];
  if (missing.length > 0)
    refuse(
      `It is measured beside ${missing.join(' and ')}. Install them first: (cd bench && npm ci --ignore-scripts).`,
    );
  const started = new Date();
  const log = (line: string): void => void process.stderr.write(`${name}: ${line}\n`);
  const records = Math.min(options.records, workload.recordsMax ?? options.records);
  const report = await workload.run({ ...options, records, log });
  const seconds = Math.round((Date.now() - started.getTime()) / 1000);
  return {
    bench: name,
    description: workload.description,
    records,
    started: started.toISOString(),
    seconds,
    hardware: hardware(),
    ...report,
  };
}

export function printReport(report: BenchReport & Record<string, unknown>): void {
  process.stdout.write(`\n${report['bench']}: ${report['description']}\n`);
  const records = Number(report['records']);
  const size = records === 0 ? '' : `${records.toLocaleString('en-US')} records, `;
  process.stdout.write(`${size}${report['seconds']} s\n`);
  console.table(report.rows);
  for (const note of report.notes) process.stdout.write(`- ${note}\n`);
}

function names(): string[] {
  return readdirSync(WORKLOADS)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length));
}

/** Returns the usage text, with the description of each workload. */
async function usage(): Promise<string> {
  const lines = await Promise.all(
    names().map(async (name) => {
      const { workload } = (await import(new URL(`${name}.ts`, WORKLOADS).href)) as { workload: Workload };
      return `${name.padEnd(10)} ${workload.description}`;
    }),
  );
  return [...lines, USAGE].join('\n');
}

if (import.meta.main) {
  const { values, positionals } = await readOptions(
    usage,
    { records: '1000000', json: '', dir: 'var/bench-data', beside: '' },
    true,
  );
  const [name] = positionals;
  if (name === undefined) {
    process.stdout.write(`${await usage()}\n`);
    process.exit(0);
  }
  if (!names().includes(name)) refuse(`No workload is called '${name}': ${names().join(', ')}.`);
  if (positionals.length > 1) refuse(`One workload at a time: '${positionals.join(' ')}' are ${positionals.length}.`);
  const records = wholeNumber(values, 'records', 1_000);
  const dir = resolve(values.dir);
  mkdirSync(dir, { recursive: true });
  const report = await runBench(name, {
    records,
    dir,
    beside: values.beside === '' ? undefined : resolve(values.beside),
  });
  printReport(report);
  if (values.json !== '') {
    mkdirSync(dirname(resolve(values.json)), { recursive: true });
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  }
}
