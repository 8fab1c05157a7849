/** `pagegate verify`: reads every byte of an index. */
import type { Command } from 'commander';
import { EXIT } from '../errors.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './index-option.ts';
import { createProgress, printJson, printLine, withInterrupt } from './output.ts';

export function registerVerify(program: Command): void {
  addIndexOptions(program.command('verify').description('read every byte of an index and name what is damaged'))
    .argument('[file]', 'index file (else --index, else the one that is served)')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate verify var/index/current/index.pgx')
    .action(verify);
}

async function verify(file: string | undefined, options: IndexFlags & { readonly json?: true }): Promise<void> {
  const { verifyIndex } = await import('../index/verify.ts');
  const path = file ?? (await indexPathFrom(options));
  const progress = createProgress();
  const onProgress = (done: number, total: number): void => {
    progress.update(`verifying ${path}: ${((100 * done) / Math.max(1, total)).toFixed(0)} %`);
  };
  const report = await withInterrupt((signal) => verifyIndex(path, { onProgress, signal })).finally(() =>
    progress.done(),
  );
  if (options.json) printJson(report);
  else if (report.ok) {
    printLine(
      `${path}: intact, ${report.recordCount.toLocaleString('en-US')} records, ${report.sizeBytes.toLocaleString('en-US')} bytes.`,
    );
  } else {
    for (const { offset, sizeBytes, where, what } of report.damages) {
      printLine(`${path}: bytes ${offset} to ${offset + sizeBytes - 1} (${where}): ${what}`);
    }
    printLine(`${path}: DAMAGED. Replace it by a fresh copy, or rebuild it from its drop.`);
  }
  if (!report.ok) process.exitCode = EXIT.corrupt;
}
