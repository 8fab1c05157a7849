/** `pagegate refresh`: a delivered drop becomes the served generation, or is refused and nothing changes. */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { EXIT } from '../errors.ts';
import { WORKERS_MAX } from '../platform/threads.ts';
import type { RefreshReport } from '../refresh/refresh.ts';
import { addConfigOptions, type ConfigFlags, configFrom } from './shared/config-options.ts';
import { parsePositive, parseThreads } from './shared/numbers.ts';
import { createProgress, printable, printJson, printLine, withInterrupt } from './shared/output.ts';

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
    .argument('<drop>', 'the drop: a folder with manifest.json')
    .option('--unsigned', 'accept a drop that has no signature')
    .option('--rollback', 'accept a drop that is older than what is served, or was rolled back here')
    .option('--other-dataset', 'accept a drop of another dataset than what is served')
    .option('--rebuild', 'build again what is served already, after an upgrade of the program')
    .option('--keep <n>', 'generations to keep, the served one included (else the configured number)', parsePositive)
    .option(
      '--workers <n>',
      `threads that build and verify, at most ${WORKERS_MAX} (else one for each processor)`,
      parseThreads,
    )
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate refresh /srv/pagegate/drop')
    .action(run);
}

async function run(drop: string, options: RefreshFlags): Promise<void> {
  const config = await configFrom(options);
  const { statePaths } = await import('../config/paths.ts');
  const { refresh } = await import('../refresh/refresh.ts');
  const { createActivationSteps, describeNotice } = await import('../activation/steps.ts');
  const { readDropKeys } = await import('../activation/drop-keys.ts');
  const { ProgressFile } = await import('../refresh/progress.ts');
  const { createBuildStep } = await import('./shared/refresh-steps.ts');
  const line = createProgress();
  // Others may want to see it, too: the console shows it.
  const shared = new ProgressFile(statePaths(config).indexDir);
  const progress = {
    update: (text: string): void => {
      line.update(text);
      shared.update(text);
    },
    done: (): void => {
      line.done();
      shared.done();
    },
  };
  const steps = {
    ...(await createActivationSteps(config, progress, options.workers)),
    build: createBuildStep(progress, options.workers),
  };
  const report = await withInterrupt(async (signal) =>
    refresh(
      {
        drop,
        store: statePaths(config).indexDir,
        keep: options.keep ?? config.refresh.keep_generations,
        trustedKeys: readDropKeys(config),
        unsigned: options.unsigned === true,
        rollback: options.rollback === true,
        otherDataset: options.otherDataset === true,
        rebuild: options.rebuild === true,
        signal,
      },
      steps,
    ),
  ).finally(() => progress.done());
  const { noteActivation } = await import('../activation/note.ts');
  const missing =
    report.outcome === 'unchanged'
      ? undefined
      : await noteActivation(config, userInfo().username, 'generation.refresh', report);
  if (missing !== undefined) process.stderr.write(`pagegate: ${printable(missing)}\n`);
  if (report.notice.server === 'failed') process.exitCode = EXIT.refused;
  if (options.json) printJson(reportJson(report));
  else for (const line of [...describe(report), describeNotice(report.notice)]) if (line !== '') printLine(line);
}

function reportJson(report: RefreshReport): Record<string, unknown> {
  return {
    outcome: report.outcome,
    generation: report.generation,
    previous_generation: report.previousGeneration,
    dataset: report.dataset,
    revision: report.revision,
    created: report.created,
    manifest_sha256: report.manifestSha256,
    signed_by: report.signedBy,
    reused: report.reused,
    records: report.recordCount,
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
    duration_ms: report.durationMs,
  };
}

function describe(report: RefreshReport): string[] {
  const { dataset, revision, generation, recordCount, sizeBytes, signedBy, prunedGenerations } = report;
  const what = `${dataset} revision ${revision} (${signedBy === null ? 'unsigned' : `signed by ${signedBy}`})`;
  if (report.withdrawn !== null) {
    const { withdrawn } = report;
    return [
      `unchanged (withdrawn): revision ${withdrawn.revision} was rolled back here at ${withdrawn.withdrawnAt}, as generation ${withdrawn.generation}.`,
      `${what} is served as generation ${generation}. To serve the other one on purpose: pagegate rollback --to ${withdrawn.generation}, or --rollback.`,
    ];
  }
  if (report.outcome === 'unchanged') return [`${what} is already served as generation ${generation}; nothing to do.`];
  const how = report.reused ? 'was already built and is now served' : 'is built, verified and served';
  const size = `${recordCount.toLocaleString('en-US')} records, ${sizeBytes.toLocaleString('en-US')} bytes`;
  const lines = [`${what} ${how} as generation ${generation}: ${size}, ${(report.durationMs / 1000).toFixed(1)} s.`];
  if (prunedGenerations.length > 0) lines.push(`Generations removed: ${prunedGenerations.join(', ')}.`);
  return lines;
}
