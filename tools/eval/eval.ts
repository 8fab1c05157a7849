/** `make eval`: what share of labelled real pages the shipped rules judge as their label asks for. */
import { writeFileSync } from 'node:fs';
import { printLine, printTable } from '../../src/commands/shared/output.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { readOptions, refuse, wholeNumber } from '../options.ts';
import { readLabelled } from './labelled.ts';
import {
  COUNT_MIN,
  GOAL_TYPES,
  PURPOSE_TYPES,
  READING_TYPES,
  type Score,
  score,
  type TypeScore,
  unmetGoals,
} from './score.ts';

const HALVES = ['report', 'develop', 'both'];
const USAGE =
  'Usage: node tools/eval/eval.ts [--data FILE] [--half report|develop|both] [--type TYPE] [--misses N] [--json FILE]';

const { values } = await readOptions(USAGE, {
  data: new URL('../../test/data/labelled-urls.tsv.gz', import.meta.url).pathname,
  half: 'report',
  misses: '10',
  type: '',
  json: '',
});
const misses = wholeNumber(values, 'misses', 0);
if (!HALVES.includes(values.half)) refuse(`--half must be one of ${HALVES.join(', ')}.`);
const types: readonly string[] = values.type === '' ? [...PURPOSE_TYPES, ...READING_TYPES] : [values.type];
const share = (part: number, whole: number): string => (whole === 0 ? '–' : `${((part / whole) * 100).toFixed(1)} %`);

function tableRow(row: TypeScore): (string | number)[] {
  const { count } = row;
  return [row.type, count, row.denied, share(row.denied, count), row.flagged, share(row.flagged, count), row.allowed];
}

function printScore(result: Score): void {
  printTable([
    ['type', 'pages', 'denied', '', 'flagged', '', 'allowed'],
    ...result.types.map(tableRow),
    tableRow(result.reading),
  ]);
  for (const type of types) {
    const wrong = result.misses.filter(({ row }) => row.type === type);
    // Denied reading pages are worse than flagged ones; among equals the order is the data's.
    wrong.sort((a, b) => (a.verdict.verdict === 'deny' ? 0 : 1) - (b.verdict.verdict === 'deny' ? 0 : 1));
    if (wrong.length === 0 || misses === 0) continue;
    printLine(`\n${type}: ${wrong.length} judged otherwise${wrong.length > misses ? `, the first ${misses}` : ''}`);
    for (const { row, verdict } of wrong.slice(0, misses)) {
      printLine(`  ${verdict.verdict.padEnd(5)} ${verdict.id.padEnd(16)} ${row.url.slice(0, 160)}`);
    }
  }
}

const labelled = readLabelled(values.data, new Set([...PURPOSE_TYPES, ...READING_TYPES]));
const rows = labelled.rows.filter((row) => values.half === 'both' || row.half === values.half);
const result = score(loadPolicy(), rows);
const unmet = unmetGoals(result);
if (values.json !== '') {
  const report = { half: values.half, pages: rows.length, types: result.types, reading: result.reading, unmet };
  writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
}
printLine(
  `${rows.length.toLocaleString('en-US')} pages, half: ${values.half} (left out: ${labelled.duplicates} said twice, ${labelled.unparsable} no URL)\n`,
);
printScore(result);
const few = result.types.filter(({ type, count }) => GOAL_TYPES.includes(type) && count < COUNT_MIN);
for (const { type, count } of few)
  printLine(`\n${type}: ${count} pages are too few to hold the goal against; see --half both, or --data.`);
printLine(unmet.length === 0 ? '\nEvery goal is met.' : `\nNot met: ${unmet.join('; ')}.`);
process.exitCode = unmet.length === 0 ? 0 : 4;
