/** `pagegate rollback`: serves an earlier generation again. */
import type { Command } from 'commander';
import { EXIT } from '../errors.ts';
import { currentUser } from '../platform/user.ts';
import { addConfigOptions, type ConfigFlags, configToWrite } from './shared/config-options.ts';
import { parsePositive } from './shared/numbers.ts';
import { printJson, printLine, warn, withProgress } from './shared/output.ts';

interface RollbackFlags extends ConfigFlags {
  readonly to?: number;
  readonly json?: true;
}

export function registerRollback(program: Command): void {
  addConfigOptions(program.command('rollback').description('serve an earlier index generation again'))
    .option('--to <generation>', 'the generation to serve (else the one before the served one)', parsePositive)
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate rollback --to 12')
    .action(run);
}

async function run(options: RollbackFlags): Promise<void> {
  const config = await configToWrite(options);
  const { statePaths } = await import('../config/paths.ts');
  const { rollback } = await import('../refresh/rollback.ts');
  const { createRefreshSteps, describeNotice } = await import('../refresh-steps/steps.ts');
  const report = await withProgress(async (progress, signal) => {
    const steps = await createRefreshSteps(config, progress);
    return rollback({ store: statePaths(config).indexDir, to: options.to, signal }, steps);
  });
  const { noteInAudit } = await import('../refresh-steps/audit-note.ts');
  const missing = await noteInAudit(config, currentUser(), 'generation.rollback', report);
  if (missing !== undefined) warn(missing);
  if (report.notice.server === 'failed') process.exitCode = EXIT.refused;
  if (options.json) {
    printJson({
      outcome: report.outcome,
      generation: report.generation,
      revision: report.revision,
      previous_generation: report.previousGeneration,
      notice: report.notice,
    });
    return;
  }
  const isSame = report.outcome === 'unchanged' || report.previousGeneration === null;
  const before = isSame ? '' : ` (before: generation ${report.previousGeneration})`;
  const verb = report.outcome === 'unchanged' ? 'Already serving' : 'Now serving';
  printLine(`${verb} generation ${report.generation}, revision ${report.revision}${before}.`);
  printLine(describeNotice(report.notice));
}
