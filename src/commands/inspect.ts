/** `pagegate inspect`: shows the origin and the structure of an index. */
import type { Command } from 'commander';
import { withCommas } from '../counted.ts';
import type { IndexScan } from '../index/read-all.ts';
import type { IndexStatistics } from '../index/statistics.ts';
import { shareOf } from '../progress.ts';
import { utc } from '../times.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { printJson, printLine, printTable, withProgress } from './shared/output.ts';

const BAR_WIDTH = 40;

export function registerInspect(program: Command): void {
  addIndexOptions(
    program.command('inspect').description('show the origin, sections, fill and bytes per record of an index'),
  )
    .argument('[file]', 'index file (else --index, else the one that is served)')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate inspect var/index/current/index.pgx')
    .action(inspect);
}

async function inspect(file: string | undefined, options: IndexFlags & { readonly json?: true }): Promise<void> {
  const { openScan } = await import('../index/read-all.ts');
  const { readStatistics, STATISTICS_CHUNK_BYTES } = await import('../index/statistics.ts');
  const scan = openScan(file ?? (await indexPathFrom(options)), { payloadChunkBytes: STATISTICS_CHUNK_BYTES });
  try {
    const statistics = await withProgress((progress, signal) => {
      const onProgress = (done: number, total: number): void =>
        progress.update({ what: 'reading the index', share: shareOf(done, total) });
      return readStatistics(scan, onProgress, signal);
    });
    if (options.json) printJson(toJson(scan, statistics));
    else print(scan, statistics);
  } finally {
    scan.close();
  }
}

function toJson({ info, sections }: IndexScan, statistics: IndexStatistics): Readonly<Record<string, unknown>> {
  const rows = Object.entries(sections).map(([name, { offset, size, checksum }]) => ({
    name,
    offset,
    size_bytes: size,
    xxh64: checksum === 0n ? null : checksum.toString(16).padStart(16, '0'),
  }));
  return {
    path: info.path,
    format_version: info.formatVersion,
    size_bytes: info.sizeBytes,
    records: info.recordCount,
    buckets: info.bucketCount,
    dataset: info.dataset,
    revision: info.revision,
    created_at: utc(info.created),
    generation: info.generation,
    manifest_sha256: info.manifestSha256,
    page_types_complete: info.pageTypesComplete,
    vocabulary: { name: info.vocabulary.name, version: info.vocabulary.version, page_types: info.vocabulary.pageTypes },
    iab_taxonomy: { version: info.iab.version, categories: info.iab.names.length },
    filtering_taxonomy: { version: info.filtering.version, categories: info.filtering.names.length },
    unicode_version: info.unicodeVersion,
    generator: info.generator,
    max_answer_size_bytes: info.maxAnswerSizeBytes,
    sections: rows,
    buckets_by_records: statistics.bucketsByRecords,
    overflowing_records: statistics.overflowing,
    bytes_per_record: statistics.bytesPerRecord,
    pages_per_record: statistics.pagesPerRecord,
    sampled_records: statistics.sampledRecords,
  };
}

function print({ info, sections }: IndexScan, statistics: IndexStatistics): void {
  const absence = info.pageTypesComplete
    ? 'complete (a page type that a record lacks is known not to exist)'
    : 'partial (a page type that a record lacks may exist)';
  const facts: readonly (readonly [string, string])[] = [
    ['file', `${info.path} (format ${info.formatVersion}, ${withCommas(info.sizeBytes)} bytes)`],
    ['dataset', `${info.dataset}, revision ${info.revision}, created ${info.created}`],
    ['generation', String(info.generation)],
    ['manifest', `SHA-256 ${info.manifestSha256}`],
    ['records', withCommas(info.recordCount)],
    [
      'page types',
      `${info.vocabulary.pageTypes.length} of vocabulary ${info.vocabulary.name} ${info.vocabulary.version}; ${absence}`,
    ],
    ['taxonomies', `${info.iab.version}, ${info.filtering.version}`],
    ['Unicode', info.unicodeVersion],
    ['written by', info.generator],
  ];
  for (const [name, value] of facts) printLine(`${name.padEnd(12)}${value}`);
  printLine();
  const rows = Object.entries(sections).map(([name, { offset, size }]) => [name, offset, size]);
  printTable([['section', 'offset', 'bytes'], ...rows]);
  printLine();
  printLine(
    `Bytes per record${statistics.sampledRecords < info.recordCount ? ` (sample of ${withCommas(statistics.sampledRecords)})` : ''}:`,
  );
  const { file, ...parts } = statistics.bytesPerRecord;
  printBars(Object.entries(parts).map(([name, bytes]) => [name, bytes, bytes.toFixed(2)]));
  printLine(`  ${'file'.padEnd(10)} ${file.toFixed(2)}, with ${statistics.pagesPerRecord.toFixed(2)} page URLs`);
  printLine();
  printLine(
    `Buckets by number of records (${withCommas(info.bucketCount)} buckets, ${withCommas(statistics.overflowing)} records overflow):`,
  );
  printBars(statistics.bucketsByRecords.map((buckets, count) => [String(count), buckets, withCommas(buckets)]));
}

function printBars(rows: readonly (readonly [string, number, string])[]): void {
  const most = Math.max(1e-9, ...rows.map(([, value]) => value));
  const width = Math.max(...rows.map(([, , text]) => text.length));
  for (const [name, value, text] of rows) {
    const bar = '█'.repeat(Math.round((value / most) * BAR_WIDTH));
    printLine(`  ${name.padEnd(10)} ${text.padStart(width)} ${bar}`.trimEnd());
  }
}
