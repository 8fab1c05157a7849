/** Writes a dataset in parts. Part borders depend only on the number of records, so the bytes do not depend on the number of threads. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import { DIRT_MAX_BYTES, DirtSource } from './dirt.ts';
import { GENERATED_LINE_MAX_BYTES, RecordSource } from './records.ts';

export type Compression = 'none' | 'gzip' | 'zstd';

export interface DatasetOptions {
  readonly records: number;
  readonly seed: number;
  /** Share of dirt, from 0 to 1. */
  readonly dirt: number;
  readonly compression: Compression;
}

export interface WrittenPart {
  readonly name: string;
  readonly bytes: number;
  readonly records: number;
  readonly sha256: string;
  readonly ndjsonBytes: number;
  readonly dirt: Readonly<Record<string, number>>;
}

/** Beyond 800 million, the arithmetic of the names would exceed the exact integers of a double. */
export const DATASET_RECORDS_MAX = 800_000_000;
const RECORDS_PER_PART = 500_000;
const PARTS_MAX = 64;
const CHUNK_BYTES = 1 << 20;
const EXTENSION: Readonly<Record<Compression, string>> = { none: '', gzip: '.gz', zstd: '.zst' };

export function partCount(records: number): number {
  return Math.min(PARTS_MAX, Math.max(1, Math.ceil(records / RECORDS_PER_PART)));
}

/** Returns the records of a part: [from, to). */
export function partRange(records: number, part: number): { readonly from: number; readonly to: number } {
  const parts = partCount(records);
  return { from: Math.floor((records * part) / parts), to: Math.floor((records * (part + 1)) / parts) };
}

/** Generates the lines of one dataset. Creating it takes a few milliseconds and megabytes. */
export class Dataset {
  readonly options: DatasetOptions;
  readonly #source: RecordSource;

  constructor(options: DatasetOptions) {
    this.options = options;
    this.#source = new RecordSource(options.records, options.seed);
  }

  /** Returns the host name of record `i`, before any dirt. */
  nameOf(i: number): string {
    const bytes = Buffer.alloc(256);
    return bytes.toString('latin1', 0, this.#source.names.write(i, bytes, 0));
  }

  /** Returns the name of record `i` with an underscore in its registrable label. No record has such a name, so it is never found. */
  absentNameOf(i: number): string {
    const name = this.nameOf(i);
    const middle = Math.floor(
      (this.#source.names.registrableAt + name.indexOf('.', this.#source.names.registrableAt)) / 2,
    );
    return `${name.slice(0, middle)}_${name.slice(middle + 1)}`;
  }

  /** Yields the lines of records [from, to) in new buffers of about a megabyte. Adds the numbers of dirty lines to `counts`. */
  *chunks(from: number, to: number, counts: Record<string, number> = {}): Generator<Buffer> {
    const dirt = new DirtSource(this.#source, this.options.seed, this.options.dirt);
    const mayBeDirty = this.options.dirt > 0;
    let out = Buffer.allocUnsafe(CHUNK_BYTES + GENERATED_LINE_MAX_BYTES + (mayBeDirty ? DIRT_MAX_BYTES : 0));
    const size = out.length;
    let at = 0;
    for (let i = from; i < to; i += 1) {
      at = mayBeDirty && dirt.isDirt(i) ? dirt.write(i, out, at) : this.#source.write(i, out, at);
      if (at >= CHUNK_BYTES) {
        yield out.subarray(0, at);
        out = Buffer.allocUnsafe(size);
        at = 0;
      }
    }
    for (const [kind, count] of Object.entries(dirt.counts)) counts[kind] = (counts[kind] ?? 0) + count;
    if (at > 0) yield out.subarray(0, at);
  }
}

function compressor(compression: Compression): Transform[] {
  if (compression === 'gzip') return [createGzip({ level: 6 })];
  if (compression === 'zstd') return [createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } })];
  return [];
}

export function partName({ records, compression }: DatasetOptions, part: number): string {
  const digits = String(partCount(records) - 1).length;
  return `part-${String(part).padStart(digits, '0')}.ndjson${EXTENSION[compression]}`;
}

export async function writePart(dataset: Dataset, part: number, directory: string): Promise<WrittenPart> {
  const { records, compression } = dataset.options;
  const { from, to } = partRange(records, part);
  const name = partName(dataset.options, part);
  const dirt: Record<string, number> = {};
  const hash = createHash('sha256');
  let bytes = 0;
  let ndjsonBytes = 0;
  function* counted(): Generator<Buffer> {
    for (const chunk of dataset.chunks(from, to, dirt)) {
      ndjsonBytes += chunk.length;
      yield chunk;
    }
  }
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done): void {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const stages: (NodeJS.ReadableStream | NodeJS.ReadWriteStream | NodeJS.WritableStream)[] = [
    Readable.from(counted()),
    ...compressor(compression),
    hashing,
    createWriteStream(join(directory, name)),
  ];
  await pipeline(stages);
  return { name, bytes, records: to - from, sha256: hash.digest('hex'), ndjsonBytes, dirt };
}
