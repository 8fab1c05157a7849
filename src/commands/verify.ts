/** `pagegate verify`: reads and checks every byte of an index. */
import type { Command } from 'commander';
import { counted, withCommas } from '../counted.ts';
import { EXIT } from '../errors.ts';
import type { VerifyReport } from '../index/verify.ts';
import { shareOf } from '../progress.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { parseThreads, THREADS } from './shared/numbers.ts';
import { printJson, printLine, withProgress } from './shared/output.ts';

export function registerVerify(program: Command): void {
  addIndexOptions(program.command('verify').description('read every byte of an index and report what is damaged'))
    .argument('[file]', 'index file (else --index, else the one that is served)')
    .option('--workers <n>', `threads, ${THREADS} (default: one for each core, fewer for a small index)`, parseThreads)
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate verify var/index/current/index.pgx')
    .action(verify);
}

interface VerifyFlags extends IndexFlags {
  readonly workers?: number;
  readonly json?: true;
}

async function verify(file: string | undefined, options: VerifyFlags): Promise<void> {
  const { verifyIndex } = await import('../index/verify.ts');
  const path = file ?? (await indexPathFrom(options));
  const workers = options.workers === undefined ? {} : { workers: options.workers };
  const report = await withProgress((progress, signal) => {
    const onProgress = (done: number, total: number): void =>
      progress.update({ what: 'verifying', share: shareOf(done, total), detail: path });
    return verifyIndex(path, { onProgress, signal, ...workers });
  });
  if (options.json) printJson(toJson(report));
  else if (report.ok) {
    printLine(`${path}: intact, ${counted(report.recordCount, 'record')}, ${withCommas(report.sizeBytes)} bytes.`);
  } else {
    for (const { offset, sizeBytes, where, what } of report.damages) {
      printLine(`${path}: bytes ${offset} to ${offset + sizeBytes - 1} (${where}): ${what}`);
    }
    printLine(`${path}: DAMAGED. Replace it with a fresh copy, or rebuild it from its drop.`);
  }
  if (!report.ok) process.exitCode = EXIT.corrupt;
}

function toJson({ path, sizeBytes, ok, recordCount, damages }: VerifyReport): Record<string, unknown> {
  return {
    path,
    size_bytes: sizeBytes,
    ok,
    records: recordCount,
    damages: damages.map((one) => ({
      offset: one.offset,
      size_bytes: one.sizeBytes,
      where: one.where,
      what: one.what,
    })),
  };
}
