/** `make bench`, `make bench-40m`: runs all benches one after the other and writes a JSON file for each. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readOptions, wholeNumber } from '../tools/options.ts';
import { printReport, runBench } from './run.ts';

const INDEX_BENCHES = ['size', 'lookup', 'open', 'cold', 'build'];
const OTHER_BENCHES = ['verdict', 'http', 'metering', 'guard', 'console'];
/** From this size on, only the index benches run, at several sizes, to show whether the cost per record grows. */
const LARGE = 40_000_000;
const USAGE = 'Usage: node bench/all.ts [--records N] [--out DIR] [--dir DIR]';
const SIZES = [1_000_000, 5_000_000];

const { values } = await readOptions(USAGE, { records: '5000000', out: 'var/bench', dir: 'var/bench-data' });
const records = wholeNumber(values, 'records', 1_000);
const dir = resolve(values.dir);
const out = resolve(values.out);
mkdirSync(dir, { recursive: true });
mkdirSync(out, { recursive: true });
const isLarge = records >= LARGE;
for (const size of isLarge ? [...SIZES, records] : [records]) {
  for (const name of isLarge ? INDEX_BENCHES : [...INDEX_BENCHES, ...OTHER_BENCHES]) {
    // The build bench measures the smaller sizes itself.
    if (name === 'build' && size !== records) continue;
    const report = await runBench(name, { records: size, dir });
    printReport(report);
    writeFileSync(join(out, `${name}-${size}.json`), `${JSON.stringify(report, null, 2)}\n`);
  }
}
