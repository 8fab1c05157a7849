/** What a delivered folder must look like before anything in it is believed: names, kinds, sizes, and how far a part may unpack. */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { PagegateError } from '../errors.ts';

/** One part as the manifest lists it. */
export interface PartEntry {
  readonly name: string;
  readonly bytes: number;
  readonly records: number;
  readonly sha256: string;
}

export interface DropLimits {
  /** Parts in one drop. */
  readonly partsMax: number;
  /** Size of one part as delivered, in bytes. */
  readonly partSizeMaxBytes: number;
  /** What one part may unpack to, in bytes for each record that the manifest promises. */
  readonly unpackedPerRecordMaxBytes: number;
  /** Size of the manifest, in bytes. */
  readonly manifestSizeMaxBytes: number;
}

export const DROP_LIMITS: DropLimits = {
  partsMax: 10_000,
  partSizeMaxBytes: 256 * 2 ** 30,
  unpackedPerRecordMaxBytes: 16_384,
  manifestSizeMaxBytes: 8 * 2 ** 20,
};

/** Room for a header line or a damaged tail, so that a small part is not held to a cap of nothing. */
const UNPACKED_FLOOR_BYTES = 64 * 1024;
const PART_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

async function statPart(path: string, name: string): Promise<Stats> {
  try {
    return await lstat(path);
  } catch (cause) {
    throw new PagegateError('drop_part_missing', `${name} cannot be found.`, { part: name }, { cause });
  }
}

/** Reads a small file of a drop whole; refuses links, devices and what is larger than the limit. */
export async function readSmallFile(path: string, name: string, sizeMaxBytes: number): Promise<Buffer> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new PagegateError('drop_file_kind', `${name} is not a regular file.`, { file: name });
    if (stats.size > sizeMaxBytes) {
      throw new PagegateError('drop_too_large', `${name} has ${stats.size} bytes, allowed are ${sizeMaxBytes}.`, {
        file: name,
      });
    }
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Refuses a part name that could lead anywhere but into the drop itself. */
export function checkPartName(name: string): void {
  if (PART_NAME.test(name)) return;
  const shown = JSON.stringify(name.slice(0, 80));
  throw new PagegateError('drop_file_name', `Got ${shown}; allowed are letters, digits, ".", "_" and "-".`);
}

/** Checks names, kinds and sizes of all parts without reading them. Throws at the first that is wrong. */
export async function checkParts(
  drop: string,
  parts: readonly PartEntry[],
  limits: DropLimits = DROP_LIMITS,
): Promise<void> {
  if (parts.length > limits.partsMax) {
    throw new PagegateError('drop_too_large', `${parts.length} parts, allowed are ${limits.partsMax}.`);
  }
  const seen = new Set<string>();
  for (const part of parts) {
    checkPartName(part.name);
    if (seen.has(part.name)) throw new PagegateError('drop_file_name', `${part.name} is listed twice.`);
    seen.add(part.name);
    const stats = await statPart(join(drop, part.name), part.name);
    if (!stats.isFile()) {
      throw new PagegateError('drop_file_kind', `${part.name} is not a regular file.`, { file: part.name });
    }
    if (part.bytes > limits.partSizeMaxBytes) {
      const what = `${part.name} has ${part.bytes} bytes, allowed are ${limits.partSizeMaxBytes}.`;
      throw new PagegateError('drop_too_large', what, { file: part.name });
    }
    if (stats.size !== part.bytes) {
      const what = `${part.name}: the manifest says ${part.bytes} bytes, the file has ${stats.size}.`;
      throw new PagegateError('drop_part_size', what, { part: part.name, expected: part.bytes, got: stats.size });
    }
  }
}

/** What a part may unpack to, in bytes. */
export const unpackedCap = (part: PartEntry, limits: DropLimits = DROP_LIMITS): number =>
  UNPACKED_FLOOR_BYTES + part.records * limits.unpackedPerRecordMaxBytes;

/** Counts what goes through it and stops at the cap. */
class CappedSink extends Writable {
  sizeBytes = 0;
  readonly #part: PartEntry;
  readonly #cap: number;

  constructor(part: PartEntry, cap: number) {
    super();
    this.#part = part;
    this.#cap = cap;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.sizeBytes += chunk.length;
    if (this.sizeBytes <= this.#cap) {
      done();
      return;
    }
    const { name, records } = this.#part;
    const what = `${name} unpacks to more than ${this.#cap} bytes for the ${records} records that the manifest promises.`;
    done(new PagegateError('drop_too_large', what, { part: name }));
  }
}

function decompressor(name: string): NodeJS.ReadWriteStream | undefined {
  if (name.endsWith('.gz')) return createGunzip();
  if (name.endsWith('.zst')) return createZstdDecompress();
  return undefined;
}

/** Reads a whole part: its checksum, and whether it unpacks, fully and within its cap. Returns the unpacked size in bytes. */
export async function checkPartContent(
  drop: string,
  part: PartEntry,
  options: { readonly signal?: AbortSignal | undefined; readonly limits?: DropLimits } = {},
): Promise<number> {
  const hash = createHash('sha256');
  const handle = await open(join(drop, part.name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const source = handle.createReadStream({ highWaterMark: 1 << 20 });
  source.on('data', (chunk) => hash.update(chunk));
  const sink = new CappedSink(part, unpackedCap(part, options.limits));
  const unpack = decompressor(part.name);
  const stages = unpack === undefined ? [source, sink] : [source, unpack, sink];
  let failure: unknown;
  try {
    await pipeline(stages, options.signal === undefined ? {} : { signal: options.signal });
  } catch (error) {
    if (error instanceof PagegateError) throw error;
    if (options.signal?.aborted === true) throw options.signal.reason;
    failure = error;
  }
  if (failure !== undefined) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    throw new PagegateError('drop_part_truncated', `${part.name} cannot be unpacked: ${reason}.`, { part: part.name });
  }
  const got = hash.digest('hex');
  if (got !== part.sha256) {
    throw new PagegateError('drop_part_checksum', `${part.name}: expected ${part.sha256}, got ${got}.`, {
      part: part.name,
      expected: part.sha256,
      got,
    });
  }
  return sink.sizeBytes;
}
