/** `make eval`: what share of labelled real pages the shipped rules judge as their label asks for. */
import { parseArgs } from 'node:util';
import { printJson, printLine, printTable } from '../../src/commands/output.ts';
import { loadPolicy } from '../../src/policy/load.ts';
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

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: new URL('../../test/data/labelled-urls.tsv.gz', import.meta.url).pathname },
    half: { type: 'string', default: 'report' },
    misses: { type: 'string', default: '10' },
    type: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

const share = (part: number, whole: number): string => (whole === 0 ? '–' : `${((part / whole) * 100).toFixed(1)} %`);

function tableRow(row: TypeScore): (string | number)[] {
  const { count } = row;
  return [row.type, count, row.denied, share(row.denied, count), row.flagged, share(row.flagged, count), row.allowed];
}

function printScore(result: Score, misses: number): void {
  printTable([
    ['type', 'pages', 'denied', '', 'flagged', '', 'allowed'],
    ...result.types.map(tableRow),
    tableRow(result.reading),
  ]);
  for (const type of values.type === undefined ? [...PURPOSE_TYPES, ...READING_TYPES] : [values.type]) {
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
if (values.json) {
  printJson({ half: values.half, pages: rows.length, types: result.types, reading: result.reading, unmet });
} else {
  printLine(
    `${rows.length.toLocaleString('en-US')} pages, half: ${values.half} (left out: ${labelled.duplicates} said twice, ${labelled.unparsable} no URL)\n`,
  );
  printScore(result, Number(values.misses));
  const few = result.types.filter(({ type, count }) => GOAL_TYPES.includes(type) && count < COUNT_MIN);
  for (const { type, count } of few)
    printLine(`\n${type}: ${count} pages are too few to hold the goal against; see --half both, or --data.`);
  printLine(unmet.length === 0 ? '\nEvery goal is met.' : `\nNot met: ${unmet.join('; ')}.`);
}
process.exitCode = unmet.length === 0 ? 0 : 4;
