/** `pagegate diff`: shows what changed between two indexes. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Command } from 'commander';
import { withCommas } from '../counted.ts';
import { EXIT } from '../errors.ts';
import type { Change } from '../index/compare.ts';
import { printJson, printLine, withProgress } from './shared/output.ts';

/** Maximum number of changes that a JSON report lists; its counts include all of them. */
const LISTED_CHANGES = 1000;
const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

export function registerDiff(program: Command): void {
  program
    .command('diff')
    .description('compare two indexes: added (+), removed (-) and changed (~) domains')
    .argument('<before>', 'index file')
    .argument('<after>', 'index file')
    .option('--summary', 'print the counts only')
    .option('--json', `print counts and the first ${withCommas(LISTED_CHANGES)} changes as JSON`)
    .addHelpText('after', '\nExit code 4 if they differ.\n\nExample:\n  $ pagegate diff old.pgx new.pgx --summary')
    .action(diff);
}

async function diff(
  beforePath: string,
  afterPath: string,
  options: { readonly summary?: true; readonly json?: true },
): Promise<void> {
  const { openScan } = await import('../index/read-all.ts');
  const { compareIndexes } = await import('../index/compare.ts');
  const before = openScan(beforePath);
  const after = openScan(afterPath);
  const counts = { added: 0, removed: 0, changed: 0 };
  const listed: Change[] = [];
  try {
    await withProgress(async (progress, signal) => {
      for (const change of compareIndexes(before, after)) {
        if (change === undefined) {
          signal.throwIfAborted();
          progress.update({ what: 'comparing', detail: `${inWords(counts)} so far` });
          await nextTurn();
          continue;
        }
        counts[change.kind] += 1;
        if (options.summary) continue;
        if (options.json) {
          if (listed.length < LISTED_CHANGES) listed.push(change);
          continue;
        }
        progress.done();
        const fields = change.kind === 'changed' ? `: ${change.fields.join(', ')}` : '';
        printLine(`${SIGNS[change.kind]} ${change.domain}${fields}`);
      }
    });
  } finally {
    before.close();
    after.close();
  }
  const changes = options.summary ? {} : { changes: listed };
  if (options.json) printJson({ before: beforePath, after: afterPath, ...counts, ...changes });
  else printLine(`${inWords(counts)}.`);
  if (counts.added + counts.removed + counts.changed > 0) process.exitCode = EXIT.negative;
}

const inWords = ({ added, removed, changed }: Record<Change['kind'], number>): string =>
  `${added} added, ${removed} removed, ${changed} changed`;
