/** `pagegate build`: builds an index file from a drop. */
import { type Command, InvalidArgumentError } from 'commander';
import { type BuildPlan, REJECTS_SUFFIX } from '../builder/options.ts';
import { describeProgress, megabytes } from '../builder/progress.ts';
import type { BuildReport } from '../builder/report.ts';
import { counted, withCommas } from '../counted.ts';
import { printable } from '../platform/printable.ts';
import { utc } from '../times.ts';
import { parseGeneration, parseThreads, THREADS } from './shared/numbers.ts';
import { printJson, printLine, printTable, withProgress } from './shared/output.ts';

interface BuildFlags {
  readonly out: string;
  readonly force?: true;
  readonly generation: number;
  readonly workers?: number;
  readonly temp?: string;
  readonly vocabulary: 'core' | 'full';
  readonly rejects?: string | false;
  readonly json?: true;
}

export function registerBuild(program: Command): void {
  program
    .command('build')
    .description('build an index file from a drop')
    .argument('<drop>', 'folder that holds manifest.json and the parts')
    .requiredOption(
      '-o, --out <file>',
      'where to write the index; replaces an existing index atomically, refuses any other file',
    )
    .option('--force', 'replace any file at --out, except files of the drop')
    .option('--generation <n>', 'generation number to store in the index', parseGeneration, 1)
    .option('--workers <n>', `threads, ${THREADS} (default: one for each core)`, parseThreads)
    .option('--temp <folder>', 'folder for temporary files (default: that of the output)')
    .option('--vocabulary <scope>', 'page types to keep: core (20) or full (28)', vocabularyScope, 'full')
    .option(
      '--rejects <file>',
      'where to write rejected lines, pages and facts; replaces only an earlier report or an empty file (default: FILE.rejects.ndjson)',
    )
    .option('--no-rejects', 'only count what is rejected')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate build data/sample --out var/index.pgx')
    .action(build);
}

function vocabularyScope(text: string): string {
  if (text !== 'core' && text !== 'full') throw new InvalidArgumentError('It must be core or full.');
  return text;
}

async function build(drop: string, flags: BuildFlags): Promise<void> {
  const { buildIndex } = await import('../builder/build.ts');
  const rejectsFile = flags.rejects === false ? undefined : (flags.rejects ?? `${flags.out}${REJECTS_SUFFIX}`);
  const report = await withProgress((progress, signal) =>
    buildIndex({
      drop,
      out: flags.out,
      generation: flags.generation,
      force: flags.force === true,
      vocabulary: flags.vocabulary,
      ...(flags.workers === undefined ? {} : { workers: flags.workers }),
      ...(flags.temp === undefined ? {} : { tempDir: flags.temp }),
      ...(rejectsFile === undefined ? {} : { rejectsFile }),
      onStart: (plan) => {
        if (!flags.json) process.stderr.write(`${printable(describePlan(plan))}\n`);
      },
      onProgress: (state) => progress.update(describeProgress(state)),
      signal,
    }),
  );
  if (flags.json) printJson(toJson(report));
  else printReport(report);
}

function toJson(report: BuildReport): Record<string, unknown> {
  return {
    out: report.out,
    size_bytes: report.sizeBytes,
    dataset: report.dataset,
    revision: report.revision,
    created_at: utc(report.created),
    generation: report.generation,
    manifest_sha256: report.manifestSha256,
    page_types: report.pageTypes,
    vocabulary: report.vocabulary,
    parts: report.parts,
    lines: report.lines,
    entries: report.entries,
    duplicates: report.duplicates,
    records: report.recordCount,
    pages: report.pages,
    ranks_repeated: report.ranksRepeated,
    rejects: report.rejects,
    repairs: report.repairs,
    rejects_file: report.rejectsFile,
    rejects_written: report.rejectsWritten,
    workers: report.workers,
    duration_ms: report.durationMs,
    steps_ms: report.stepsMs,
    steps_cpu_ms: report.stepsCpuMs,
    temp_estimate_bytes: report.tempEstimateBytes,
    temp_used_bytes: report.tempUsedBytes,
    peak_memory_bytes: report.peakMemoryBytes,
  };
}

function describePlan({ records, parts, workers, tempDir, tempBytes }: BuildPlan): string {
  const lines = `${counted(records, 'line')} in ${counted(parts, 'part')}, ${threads(workers)}`;
  return `${lines}; up to ${megabytes(tempBytes)} of temporary files in ${tempDir}`;
}

function printReport(report: BuildReport): void {
  const { recordCount, sizeBytes, durationMs } = report;
  const each = recordCount === 0 ? '' : `, ${(sizeBytes / recordCount).toFixed(1)} bytes per record`;
  printLine(`${report.out}: ${counted(recordCount, 'record')}, ${megabytes(sizeBytes)}${each}`);
  printLine(
    `dataset ${report.dataset}, revision ${report.revision} of ${report.created}, generation ${report.generation}; ` +
      `page types ${report.pageTypes}, vocabulary ${report.vocabulary}`,
  );
  printLine();
  printTable([
    ['', 'count'],
    ['lines', report.lines],
    ['entries', report.entries],
    ['duplicates (a later entry of the domain won)', report.duplicates],
    ['pages', report.pages],
    ['ranks that another entry has, too', report.ranksRepeated],
  ]);
  printCounts('rejected', report.rejects);
  printCounts('repaired', report.repairs);
  if (report.rejectsFile !== null) {
    const total = Object.values(report.rejects).reduce((sum, number) => sum + number, 0);
    const kept = report.rejectsWritten === total ? 'all of them' : `${withCommas(report.rejectsWritten)} of them`;
    printLine(`\nrejects: ${report.rejectsFile} (${kept}, by file and line)`);
  }
  const memory = megabytes(report.peakMemoryBytes);
  printLine(`\nverified; ${(durationMs / 1000).toFixed(1)} s, ${threads(report.workers)}, peak memory ${memory}`);
}

/** Without worker threads, the main thread does the work. */
const threads = (workers: number): string => counted(Math.max(1, workers), 'thread');

function printCounts(title: string, counts: Readonly<Record<string, number>>): void {
  const rows = Object.entries(counts);
  if (rows.length === 0) return;
  printLine();
  printTable([[title, 'count'], ...rows]);
}
