/** `pagegate register`: checks files of the agent register. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { EXIT } from '../errors.ts';
import { printJson, printLine } from './shared/output.ts';

export function registerRegister(program: Command): void {
  const register = program.command('register').description('check files of the agent register');
  register
    .command('validate')
    .description('validate entries (a JSON object, an array, or NDJSON) against the schema')
    .argument('<files...>', 'files with entries; - reads standard input')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate register validate agents.json more-agents.ndjson')
    .action(validate);
}

async function validate(files: readonly string[], options: { readonly json?: true }): Promise<void> {
  const { readRegisterFile, RegisterValidator } = await import('../register/validate.ts');
  const validator = new RegisterValidator();
  for (const file of files) {
    if (file === '-') validator.add('<stdin>', readRegisterFile('-'));
    else validator.add(file, readRegisterFile(file));
  }
  const report = validator.report();
  if (options.json) {
    printJson(report);
  } else {
    for (const { severity, file, line, entry, agent_id, field, message } of report.findings) {
      const which =
        entry === undefined ? '' : ` entry ${entry}${agent_id === undefined ? '' : ` (${printable(agent_id)})`}:`;
      printLine(`${file}:${line}:${which} ${severity}: ${field === '' ? '' : `${printable(field)} `}${message}`);
    }
    const kept = report.findings.length;
    const total = report.errors + report.warnings;
    if (kept < total) printLine(`… ${counted(total - kept, 'more is', 'more are')} not shown.`);
    const counts = `${counted(report.errors, 'error')}, ${counted(report.warnings, 'warning')}`;
    const what = `${counted(report.entries, 'entry', 'entries')} in ${counted(report.files, 'file')}`;
    printLine(`${what}: ${report.valid ? 'valid' : 'INVALID'} (${counts})`);
  }
  if (!report.valid) process.exitCode = EXIT.bad_input;
}

/** Returns text of a file that is safe on a terminal: control characters are replaced, long text is truncated. */
function printable(text: string): string {
  const flat = text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd');
  return flat.length > 80 ? `${flat.slice(0, 79)}…` : flat;
}
