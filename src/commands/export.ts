/** `pagegate export`: writes the records of an index as lines of a drop. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Command } from 'commander';
import { LINE_FEED } from '../bytes/ascii.ts';
import { withCommas } from '../counted.ts';
import { shareOf } from '../progress.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { withProgress } from './shared/output.ts';
import { writeOutBytes } from './shared/streams.ts';

const CHUNK_SIZE_BYTES = 1 << 20;

export function registerExport(program: Command): void {
  addIndexOptions(
    program.command('export').description('write the records of an index as NDJSON, the format of a drop'),
  )
    .argument('[file]', 'index file (else --index, else the one that is served)')
    .addHelpText('after', '\nExample:\n  $ pagegate export index.pgx | zstd > part-0.ndjson.zst')
    .action(exportIndex);
}

async function exportIndex(file: string | undefined, options: IndexFlags): Promise<void> {
  const { openScan } = await import('../index/read-all.ts');
  const scan = openScan(file ?? (await indexPathFrom(options)));
  try {
    await withProgress(async (progress, signal) => {
      const most = scan.info.maxAnswerSizeBytes + 1;
      const total = scan.info.recordCount;
      let chunk = Buffer.allocUnsafe(CHUNK_SIZE_BYTES + most);
      let size = 0;
      let done = 0;
      const flush = async (): Promise<void> => {
        // Writes to a file finish without yielding: without a turn of the event loop no signal would be handled.
        await nextTurn();
        signal.throwIfAborted();
        await writeOutBytes(chunk.subarray(0, size), signal);
        // The stream may still hold the old chunk.
        chunk = Buffer.allocUnsafe(CHUNK_SIZE_BYTES + most);
        size = 0;
        progress.update({
          what: 'exporting',
          share: shareOf(done, total),
          detail: `${withCommas(done)} records`,
        });
      };
      while (scan.nextBucket()) {
        while (scan.nextRecord()) {
          size = scan.writeEntry(chunk, size);
          chunk[size++] = LINE_FEED;
          done += 1;
          if (size >= CHUNK_SIZE_BYTES) await flush();
        }
      }
      await flush();
    });
  } finally {
    scan.close();
  }
}
