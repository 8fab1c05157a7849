/** `npm run bench -- size`: bytes per record, compared with the peers and the compressed drop. */
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { constants, createZstdCompress } from 'node:zlib';
import { openScan } from '../../src/index/read-all.ts';
import { readStatistics, STATISTICS_CHUNK_BYTES } from '../../src/index/statistics.ts';
import { ensureDrop, ensureIndex, ndjsonSize, node } from '../data.ts';
import { partsOf } from '../drop-lines.ts';
import { ensurePeers, PEERS, peerSize } from '../peers.ts';
import type { BenchOptions, BenchReport, Cell, Workload } from '../workload.ts';
import { PEERS_MAX_RECORDS } from './lookup.ts';

/** Limit for zstd -19, which is slow. */
const BEST_MAX_RECORDS = 1_000_000;

/** Returns the total size of a drop's parts in bytes, each compressed separately, as drops are delivered. */
async function compressedSize(drop: string, level: number): Promise<number> {
  let size = 0;
  for (const path of partsOf(drop)) {
    const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: level } });
    const count = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) size += chunk.length;
    };
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), compress, count);
  }
  return size;
}

/** Adds rows for the committed sample drop, compared with its compressed parts. */
function addSample(rows: Record<string, Cell>[], dir: string): void {
  const drop = fileURLToPath(new URL('../../data/sample', import.meta.url));
  const path = join(dir, 'index-sample.pgx');
  if (!existsSync(path)) node('src/cli.ts', ['build', drop, '--out', path, '--no-rejects']);
  const scan = openScan(path);
  const count = scan.info.recordCount;
  scan.close();
  const parts = readdirSync(drop).filter((file) => file.includes('.ndjson'));
  const packed = parts.reduce((sum, file) => sum + statSync(join(drop, file)).size, 0);
  for (const [what, size] of [
    ['sample drop: pagegate index', statSync(path).size],
    ['sample drop: as delivered (zstd, gzip)', packed],
  ] as const) {
    rows.push({
      what,
      'bytes a record': Number((size / count).toFixed(2)),
      'of zstd -3': Number((size / packed).toFixed(3)),
    });
  }
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const { records, dir, log } = options;
  const drop = ensureDrop(options);
  const path = ensureIndex(options);
  const scan = openScan(path, { payloadChunkBytes: STATISTICS_CHUNK_BYTES });
  const { sections } = scan;
  const count = scan.info.recordCount;
  const { bytesPerRecord: parts, pagesPerRecord } = await readStatistics(scan);
  scan.close();
  log('zstd -3');
  const fast = await compressedSize(drop, 3);
  const rows: Record<string, Cell>[] = [];
  const add = (what: string, size: number): void => {
    rows.push({
      what,
      'bytes a record': Number((size / count).toFixed(2)),
      'of zstd -3': Number((size / fast).toFixed(3)),
    });
  };
  add('pagegate index, the whole file', statSync(path).size);
  add('  directory', sections.directory.size);
  add('  payload', sections.payload.size);
  for (const name of ['domain', 'facts', 'templates', 'literals', 'padding', 'checksum'] as const)
    add(`    ${name}`, parts[name] * count);
  add('  dictionary, blocks, metadata', sections.dictionary.size + sections.blocks.size + sections.metadata.size);
  add('NDJSON', ndjsonSize(drop));
  add('NDJSON, zstd -3', fast);
  if (records <= BEST_MAX_RECORDS) {
    log('zstd -19');
    add('NDJSON, zstd -19', await compressedSize(drop, 19));
  }
  const peers = records > PEERS_MAX_RECORDS ? [] : PEERS.filter((name) => name !== 'map');
  await ensurePeers(dir, peers, records, log);
  for (const peer of peers) add(peer, peerSize(dir, peer, records));
  addSample(rows, dir);
  return {
    rows,
    notes: [
      'The sample drop is the real one in data/: few of its records have pages, so most of a record is its name. Its parts count as they are delivered.',
      `${count.toLocaleString('en-US')} records with ${pagesPerRecord.toFixed(2)} page URLs each.`,
      'Parts are compressed one by one, as they are delivered. Peers hold MessagePack values, uncompressed, loaded in the order of the keys.',
    ],
  };
}

export const workload: Workload = {
  name: 'size',
  description: 'bytes a record, on the disk',
  hasPeers: true,
  run,
};
