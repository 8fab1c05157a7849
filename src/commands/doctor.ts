/** `pagegate doctor`: checks everything that the program depends on, and advises what to do. It changes nothing. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import type { CheckResult, Status } from '../doctor/check.ts';
import { EXIT } from '../errors.ts';
import { addConfigOptions, type ConfigFlags, configFrom } from './shared/config-options.ts';
import { printJson, printLine } from './shared/output.ts';

interface DoctorFlags extends ConfigFlags {
  readonly json?: true;
}

const MARKS: Readonly<Record<Status, string>> = { ok: 'ok', warning: 'WARNING', problem: 'PROBLEM', skipped: '-' };

export function registerDoctor(program: Command): void {
  addConfigOptions(
    program.command('doctor').description('check host, files, license, index and ledger; say what to do'),
  )
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate doctor --config /etc/pagegate/config.json')
    .action(doctor);
}

async function doctor(options: DoctorFlags): Promise<void> {
  const results = await examine(options);
  const problems = results.filter((result) => result.status === 'problem').length;
  const warnings = results.filter((result) => result.status === 'warning').length;
  if (options.json) printJson({ ok: problems === 0, problems, warnings, checks: results });
  else {
    const width = Math.max(...results.map(({ id }) => id.length));
    for (const { id, status, found, advice } of results) {
      printLine(`${MARKS[status].padEnd(8)} ${id.padEnd(width)}  ${found}`);
      if (advice !== undefined) printLine(`${' '.repeat(width + 11)}→ ${advice}`);
    }
    printLine(`${counted(problems, 'problem')}, ${counted(warnings, 'warning')}.`);
  }
  if (problems > 0) process.exitCode = EXIT.environment;
}

async function examine(options: DoctorFlags): Promise<CheckResult[]> {
  try {
    const config = await configFrom(options);
    const doctor = await import('../doctor/examine.ts');
    return await doctor.examineAsServer(config, () => configFrom(options));
  } catch (error) {
    const { failed } = await import('../doctor/check.ts');
    return [{ id: 'configuration', ...failed(error) }];
  }
}
