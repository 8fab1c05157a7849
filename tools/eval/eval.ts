/** `make eval`: the share of real pages that the shipped rules judge correctly, by category, language and rule. */
import { writeFileSync } from 'node:fs';
import { printLine, printTable } from '../../src/commands/shared/output.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { readOptions, refuse, wholeNumber } from '../options.ts';
import { type Rows, readRows, SETS, type SetName } from './labelled-urls.ts';
import {
  type Count,
  countBy,
  type GoalOutcome,
  GROUPS,
  type Judged,
  judge,
  misses,
  nameOf,
  outcomes,
} from './score.ts';

const HALVES = ['report', 'develop', 'both'];
const USAGE = `Usage: node tools/eval/eval.ts [--set ${Object.keys(SETS).join('|')}|all] [--half report|develop|both] [--data FILE]
       [--by category|language|rule|all] [--category NAME] [--misses N] [--unsure N] [--json FILE]

--data FILE judges a table of the same columns in place of the set: one that must not be passed on.
What is judged wrong of a put-away half (\`report\`) is listed only with --misses N: whoever works on the rules does not look.
--unsure N lists pages on which only the context of a word decides. Ends with 4 where a goal is not met in one of the halves.`;

const { values } = await readOptions(USAGE, {
  set: 'all',
  data: '',
  half: 'report',
  by: 'category',
  category: '',
  misses: '',
  unsure: '0',
  json: '',
});
const missesMax = values.misses === '' ? (values.half === 'develop' ? 10 : 0) : wholeNumber(values, 'misses', 0);
const unsureMax = wholeNumber(values, 'unsure', 0);
if (!HALVES.includes(values.half)) refuse(`--half must be one of ${HALVES.join(', ')}.`);
if (values.set !== 'all' && !(values.set in SETS)) refuse(`--set must be one of ${Object.keys(SETS).join(', ')}, all.`);
if (values.by !== 'all' && !(values.by in GROUPS))
  refuse(`--by must be one of ${Object.keys(GROUPS).join(', ')}, all.`);
if (values.data !== '' && values.set === 'all') refuse('--data needs --set.');
const groups = values.by === 'all' ? Object.keys(GROUPS) : [values.by];
const percent = (part: number): string => `${(part * 100).toFixed(2)} %`;
const share = (part: number, whole: number): string => (whole === 0 ? '–' : `${((part / whole) * 100).toFixed(1)} %`);

function tableRow({ name, expect, count, denied, flagged }: Count): (string | number)[] {
  const kind = expect === 'deny' ? 'act' : 'reading';
  const title = name === '*' ? `all ${kind === 'act' ? 'acts' : 'reading pages'}` : `${kind} ${name}`;
  return [title, count, denied, share(denied, count), flagged, share(flagged, count), count - denied - flagged];
}

function printPages(title: string, pages: readonly Judged[], max: number): void {
  if (max === 0 || pages.length === 0) return;
  printLine(`\n${title}: ${pages.length}${pages.length > max ? `, the first ${max}` : ''}`);
  for (const { row, verdict } of pages.slice(0, max)) {
    const what = `${row.expect === 'deny' ? 'act' : 'reading'} ${row.category}`;
    printLine(`  ${verdict.verdict.padEnd(5)} ${verdict.id.padEnd(18)} ${what.padEnd(24)} ${row.url.slice(0, 160)}`);
  }
}

function printSet(set: SetName, { unparsable, duplicates, corrected }: Rows, judged: readonly Judged[]): void {
  const left = `left out: ${duplicates} said twice, ${unparsable} no URL; ${corrected} labels corrected`;
  printLine(`\n${set}: ${judged.length.toLocaleString('en-US')} pages, half: ${values.half} (${left})\n`);
  for (const by of groups) {
    printTable([[by, 'pages', 'denied', '', 'flagged', '', 'allowed'], ...countBy(judged, GROUPS[by]!).map(tableRow)]);
  }
  const wrong = misses(judged);
  printPages(
    'acts that are not denied',
    wrong.filter(({ row }) => row.expect === 'deny'),
    missesMax,
  );
  printPages(
    'reading pages that are not allowed',
    wrong.filter(({ row }) => row.expect === 'allow'),
    missesMax,
  );
  printPages(
    'least sure',
    judged.filter(({ isUnsure }) => isUnsure),
    unsureMax,
  );
}

/** Prints every goal with its outcome in each half. The halves are counted separately here, whichever rows were listed before. */
function printGoals(reached: readonly GoalOutcome[]): void {
  printLine('\nGoals\n');
  printTable([
    ['goal', 'half', 'pages', 'share', 'goal', ''],
    ...reached.map(({ goal, half, count, share: got, isMet }) => [
      nameOf(goal),
      half,
      count,
      percent(got),
      `${goal.expect === 'deny' ? '≥' : '≤'} ${percent(goal.share)}`,
      isMet ? 'met' : 'NOT MET',
    ]),
  ]);
  const unmet = reached.filter(({ isMet }) => !isMet).length;
  printLine(unmet === 0 ? '\nEvery goal is met.' : `\n${unmet} of ${reached.length} goals are not met.`);
}

const policy = loadPolicy();
const reached: GoalOutcome[] = [];
const report: Record<string, unknown> = { half: values.half };
for (const set of values.set === 'all' ? (Object.keys(SETS) as SetName[]) : [values.set as SetName]) {
  const rows = readRows(set, values.data === '' ? undefined : values.data);
  const all = judge(
    policy,
    rows.rows.filter((row) => values.category === '' || row.category === values.category),
  );
  const judged = all.filter(({ row }) => values.half === 'both' || row.half === values.half);
  const goals = outcomes(set, all);
  reached.push(...goals);
  report[set] = {
    pages: judged.length,
    goals: goals.map((outcome) => ({ ...outcome, goal: { ...outcome.goal, text: nameOf(outcome.goal) } })),
    ...Object.fromEntries(groups.map((by) => [by, countBy(judged, GROUPS[by]!)])),
  };
  printSet(set, rows, judged);
}
if (values.json !== '') writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
printGoals(reached);
process.exitCode = reached.every(({ isMet }) => isMet) ? 0 : 4;
