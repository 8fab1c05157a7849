/**
 * `make plot`: draws what `make bench` and `make bench-40m` measured, nanoseconds of a lookup and bytes a record against the number
 * of records.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from '../options.ts';
import { type Chart, drawCharts, type Series } from './svg.ts';

const USAGE = 'Usage: node tools/plot/plot.ts [--from var/bench] [--out docs/benchmarks.svg]';

type Row = Readonly<Record<string, string | number | null>>;

interface Measured {
  readonly records: number;
  readonly rows: readonly Row[];
}

/** The reports of one bench, the smallest first; a file's name is `<bench>-<records>.json`. */
export function readReports(folder: string, bench: string): Measured[] {
  const pattern = new RegExp(`^${bench}-(\\d+)\\.json$`);
  return readdirSync(folder)
    .flatMap((file) => {
      const records = pattern.exec(file)?.[1];
      if (records === undefined) return [];
      const { rows } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { rows: readonly Row[] };
      return [{ records: Number(records), rows }];
    })
    .sort((a, b) => a.records - b.records);
}

/** Reports of `size` without the parts of the index, whose names are indented, and without the sample drop, which is other data. */
export function wholesOf(reports: readonly Measured[]): Measured[] {
  const isWhole = (what: string): boolean => !/^(?: |sample drop)/.test(what);
  return reports.map(({ records, rows }) => ({ records, rows: rows.filter((row) => isWhole(`${row['what']}`)) }));
}

/** One line for each name in the column `by`: its `value` at every number of records where it was measured. */
export function seriesOf(reports: readonly Measured[], by: string, value: string, suffix = ''): Series[] {
  const lines = new Map<string, { x: number; y: number }[]>();
  for (const { records, rows } of reports) {
    for (const row of rows) {
      const name = `${row[by]}`.trim() + suffix;
      const y = row[value];
      if (typeof y !== 'number') continue;
      lines.set(name, [...(lines.get(name) ?? []), { x: records, y }]);
    }
  }
  return [...lines].map(([name, points]) => ({ name, points }));
}

function charts(folder: string): Chart[] {
  const lookups = readReports(folder, 'lookup');
  const sizes = readReports(folder, 'size');
  if (lookups.length === 0 || sizes.length === 0)
    throw new Error(`${folder}: no lookup-*.json and size-*.json here; run make bench`);
  return [
    { title: 'A lookup that hits, nanoseconds', series: seriesOf(lookups, 'store', 'hit ns') },
    { title: 'A lookup that misses, nanoseconds', series: seriesOf(lookups, 'store', 'miss ns') },
    {
      title: 'Bytes a record',
      series: seriesOf(wholesOf(sizes), 'what', 'bytes a record').map(({ name, points }) => ({
        name: name.replace(' index, the whole file', ''),
        points,
      })),
    },
  ];
}

if (import.meta.main) {
  const { values } = await readOptions(USAGE, { from: 'var/bench', out: 'docs/benchmarks.svg' });
  writeFileSync(values.out, drawCharts(charts(values.from)));
  process.stdout.write(`${values.out}\n`);
}
