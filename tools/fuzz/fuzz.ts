/** `make fuzz`: runs the fuzzers for a given time, and measures how the cost of long hostile values grows with their length. */
import { printLine, printTable } from '../../src/commands/shared/output.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { readOptions, wholeNumber } from '../options.ts';
import { fuzzAdditions } from './additions.ts';
import { longValues } from './urls.ts';
import { fuzzVerdicts, judgeValue } from './verdict.ts';

const USAGE = 'Usage: node tools/fuzz/fuzz.ts [--seconds 30] [--seed 1]';
const { values } = await readOptions(USAGE, { seconds: '30', seed: '1' });
const seconds = wholeNumber(values, 'seconds', 0);
const firstSeed = wholeNumber(values, 'seed', 0);

/** Longest time that any answer may take. */
const ANSWER_MAX_MS = 1;
/** Highest cost ratio for a value eight times as long: linear growth, with a margin for noise on a small machine. */
const GROWTH_MAX = 16;
/** The basic cost of an answer. Below it, ratios are meaningless. */
const FLOOR_MS = 0.005;

const policy = loadPolicy();

/** Most values need few runs. If other programs disturb all of them, more runs are made. */
const RUNS = 30;
const RUNS_MAX = 600;

/** Returns the duration of the shortest of several runs, in milliseconds. Longer ones were disturbed by other programs. */
function cost(value: string): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS || (run < RUNS_MAX && best > ANSWER_MAX_MS); run++) {
    const start = process.hrtime.bigint();
    judgeValue(policy, value, 'GET');
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1e6);
  }
  return best;
}

let failed = false;
const end = Date.now() + seconds * 1000;
let [seed, judged, pairs, harder, added] = [firstSeed, 0, 0, 0, 0];
do {
  const report = fuzzVerdicts(policy, seed++, 20_000);
  judged += report.judged;
  pairs += report.pairs;
  harder += report.harder;
  const additions = fuzzAdditions(policy, seed - 1, 10_000);
  for (const tried of Object.values(additions.tried)) added += tried;
  const failures = [...report.failures, ...additions.failures];
  for (const failure of failures) printLine(`FAILED (seed ${seed - 1}): ${failure}`);
  failed ||= failures.length > 0;
} while (Date.now() < end && !failed);
printLine(
  `${judged.toLocaleString('en-US')} values judged, ${pairs.toLocaleString('en-US')} pairs of spellings compared, ` +
    `${harder.toLocaleString('en-US')} judged harder for their spelling; ${added.toLocaleString('en-US')} additions to denials and flags tried; ` +
    `last seed ${seed - 1}`,
);

const rows: (string | number)[][] = [['long value', 'µs at 500', 'µs at 4,000', 'growth', 'µs at 8,000']];
const long = longValues(4000);
const longest = longValues(8000);
for (const [name, short] of Object.entries(longValues(500))) {
  const [low, high, top] = [cost(short), cost(long[name]!), cost(longest[name]!)];
  const growth = high / Math.max(low, FLOOR_MS);
  rows.push([name, Math.round(low * 1000), Math.round(high * 1000), growth.toFixed(1), Math.round(top * 1000)]);
  if (Math.max(high, top) > ANSWER_MAX_MS || growth > GROWTH_MAX) {
    failed = true;
    printLine(
      `FAILED: ${name}: ${top.toFixed(3)} ms at 8,000 characters, ${growth.toFixed(1)} times the cost at eight times the length`,
    );
  }
}
printTable(rows);
process.exitCode = failed ? 1 : 0;
