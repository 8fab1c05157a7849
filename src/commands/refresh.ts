/** `pagegate refresh`: makes a delivered drop the served generation, or refuses it and changes nothing. */
import type { Command } from 'commander';
import { EXIT, PagegateError } from '../errors.ts';
import { currentUser } from '../platform/user.ts';
import type { RefreshReport } from '../refresh/refresh.ts';
import { utc } from '../times.ts';
import { addConfigOptions, type ConfigFlags, configToWrite } from './shared/config-options.ts';
import { parsePositive, parseThreads, THREADS } from './shared/numbers.ts';
import { printJson, printLine, warn, withProgress } from './shared/output.ts';

interface RefreshFlags extends ConfigFlags {
  readonly keep?: number;
  readonly unsigned?: true;
  readonly rollback?: true;
  readonly otherDataset?: true;
  readonly rebuild?: true;
  readonly workers?: number;
  readonly json?: true;
}

export function registerRefresh(program: Command): void {
  addConfigOptions(program.command('refresh').description('build the next index generation from a drop and serve it'))
    .argument('[drop]', 'the drop: a folder with manifest.json (else refresh.drop of the configuration)')
    .option('--unsigned', 'accept a drop that has no signature')
    .option('--rollback', 'accept a drop that is older than the served one, or that was rolled back here')
    .option('--other-dataset', 'accept a drop of a different dataset from the served one')
    .option('--rebuild', 'build the served drop again, for example after an upgrade of the program')
    .option('--keep <n>', 'generations to keep, the served one included (else the configured number)', parsePositive)
    .option('--workers <n>', `threads that build and verify, ${THREADS} (else one for each core)`, parseThreads)
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate refresh /srv/pagegate/drop')
    .action(run);
}

async function run(drop: string | undefined, options: RefreshFlags): Promise<void> {
  const config = await configToWrite(options);
  const from = drop ?? config.refresh.drop;
  if (from === null)
    throw new PagegateError('usage', 'Name the drop: a folder with manifest.json, here or as refresh.drop.');
  const { describeNotice } = await import('../refresh-steps/steps.ts');
  const { describeRefresh, refreshFrom, refreshWarnings } = await import('../refresh-steps/run.ts');
  const { report, problem } = await withProgress((progress, signal) =>
    refreshFrom(
      config,
      {
        drop: from,
        actor: currentUser(),
        keep: options.keep,
        workers: options.workers,
        unsigned: options.unsigned === true,
        rollback: options.rollback === true,
        otherDataset: options.otherDataset === true,
        rebuild: options.rebuild === true,
        signal,
      },
      progress,
    ),
  );
  if (report.notice.server === 'failed') process.exitCode = EXIT.refused;
  const warnings = [...refreshWarnings(report), ...(problem === undefined ? [] : [problem])];
  for (const warning of warnings) warn(warning);
  if (options.json) printJson({ ...reportJson(report), warnings });
  else for (const line of [...describeRefresh(report), describeNotice(report.notice)]) if (line !== '') printLine(line);
}

function reportJson(report: RefreshReport): Record<string, unknown> {
  return {
    outcome: report.outcome,
    generation: report.generation,
    previous_generation: report.previousGeneration,
    dataset: report.dataset,
    revision: report.revision,
    created_at: utc(report.created),
    manifest_sha256: report.manifestSha256,
    signed_by: report.signedBy,
    reused: report.reused,
    records: report.recordCount,
    previous_records: report.previousRecordCount,
    size_bytes: report.sizeBytes,
    notice: report.notice,
    pruned_generations: report.prunedGenerations,
    withdrawn:
      report.withdrawn === null
        ? null
        : {
            generation: report.withdrawn.generation,
            revision: report.withdrawn.revision,
            withdrawn_at: report.withdrawn.withdrawnAt,
          },
    withdrawn_is_kept: report.withdrawnIsKept,
    rejects: report.rejects,
    rejects_file: report.rejectsFile,
    duration_ms: report.durationMs,
  };
}
