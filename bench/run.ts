/** `npm run bench -- NAME [--records N] [--json FILE] [--dir DIR]`: runs one bench, prints its table, keeps its numbers. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { hardware } from './hardware.ts';
import type { BenchReport, Workload } from './workload.ts';

const WORKLOADS = new URL('./workloads/', import.meta.url);
const USAGE = 'Usage: npm run bench -- NAME [--records N] [--json FILE] [--dir DIR]';

/** Runs a workload and returns its report with everything that says under which conditions it was made. */
export async function runBench(
  name: string,
  records: number,
  dir: string,
): Promise<BenchReport & Record<string, unknown>> {
  const { workload } = (await import(new URL(`${name}.ts`, WORKLOADS).href)) as { workload: Workload };
  const started = new Date();
  const log = (line: string): void => void process.stderr.write(`${name}: ${line}\n`);
  const report = await workload.run({ records, dir, log });
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
  process.stdout.write(`${Number(report['records']).toLocaleString('en-US')} records, ${report['seconds']} s\n`);
  console.table(report.rows);
  for (const note of report.notes) process.stdout.write(`- ${note}\n`);
}

function names(): string[] {
  return readdirSync(WORKLOADS)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length));
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      records: { type: 'string', default: '1000000' },
      json: { type: 'string' },
      dir: { type: 'string', default: 'var/bench-data' },
    },
  });
  const [name = ''] = positionals;
  const records = Number(values.records.replaceAll('_', ''));
  if (positionals.length === 0) {
    for (const each of names()) {
      const { workload } = (await import(new URL(`${each}.ts`, WORKLOADS).href)) as { workload: Workload };
      process.stdout.write(`${each.padEnd(10)} ${workload.description}\n`);
    }
    process.stdout.write(`${USAGE}\n`);
    process.exit(0);
  }
  if (!names().includes(name) || !Number.isInteger(records) || records < 1000) {
    process.stderr.write(`${USAGE}\nNAME is one of: ${names().join(', ')}; N is at least 1000\n`);
    process.exit(2);
  }
  const dir = resolve(values.dir);
  mkdirSync(dir, { recursive: true });
  const report = await runBench(name, records, dir);
  printReport(report);
  if (values.json !== undefined) {
    mkdirSync(dirname(resolve(values.json)), { recursive: true });
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  }
}
