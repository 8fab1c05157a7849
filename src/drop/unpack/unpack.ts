/** Unpacks a part by the extension of its name: gzip (any number of members), zstd (any number of frames), or uncompressed. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { EMPTY_FRAME, UnsupportedFrame, ZstdFrames } from './zstd-frames.ts';

/** Bytes read and unpacked at once. Small enough to stay in the processor's cache from the checksum until the lines are scanned. */
export const CHUNK_BYTES = 1 << 18;
/** Uncompressed chunks between two turns of the event loop. An interrupt thus waits for at most some hundredths of a second. */
const CHUNKS_PER_TURN = 16;

/** Returns the next bytes of a file as it is on disk, valid until the next call; undefined at its end. */
export type NextBytes = () => Buffer | undefined;

/** True if a part with this name is packed (compressed). */
export const isPacked = (name: string): boolean => name.endsWith('.gz') || name.endsWith('.zst');

/** Why a part cannot be unpacked: it is damaged or truncated, its form of compression is not supported, or it has too many frames. */
export type UnpackProblem = 'damaged' | 'unsupported' | 'too many frames';

/** A part cannot be unpacked to its end, or is followed by other bytes. */
export class UnpackError extends Error {
  readonly problem: UnpackProblem;

  /** `message`: the reason, without the name of the part. */
  constructor(message: string, problem: UnpackProblem = 'damaged', options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/**
 * Yields the unpacked bytes of a file in chunks. Each chunk is valid until the next one is requested. Reads the file to its end.
 *
 * @param maxFrames maximum number of frames of a zstd file, without empty ones
 * @throws UnpackError if the file cannot be unpacked, and whatever `next` throws
 */
export async function* unpackedChunks(
  name: string,
  next: NextBytes,
  maxFrames: number = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  if (isPacked(name)) yield* packedChunks(name, next, maxFrames);
  else yield* plainChunks(next);
}

async function* plainChunks(next: NextBytes): AsyncGenerator<Buffer> {
  let chunks = 0;
  for (let chunk = next(); chunk !== undefined; chunk = next()) {
    yield chunk;
    chunks += 1;
    if (chunks % CHUNKS_PER_TURN === 0) await nextTurn();
  }
}

async function* packedChunks(name: string, next: NextBytes, maxFrames: number): AsyncGenerator<Buffer> {
  const isZstd = name.endsWith('.zst');
  const options = { chunkSize: CHUNK_BYTES };
  const unpacker = isZstd ? createZstdDecompress(options) : createGunzip(options);
  // It may fail when its output is not read any more. A relevant failure also ends the feeding, below.
  unpacker.on('error', () => {});
  const fed = isZstd ? feedFrames(next, unpacker, maxFrames) : feedMembers(next, unpacker);
  fed.catch((error: Error) => unpacker.destroy(error));
  try {
    for await (const chunk of unpacker as AsyncIterable<Buffer>) {
      yield chunk;
      // If this chunk ends its buffer, the unpacker uses a new one next. Free this one now instead of waiting for the garbage collector.
      const { buffer, byteOffset, length } = chunk;
      if (length > 0 && byteOffset + length === buffer.byteLength) (buffer as ArrayBuffer).transfer(0);
    }
    await fed;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(Z_|ZSTD_|ERR_)/.test(code)) throw error;
    throw new UnpackError((error as Error).message, 'damaged', { cause: error });
  } finally {
    unpacker.destroy();
  }
}

type Unpacker = ReturnType<typeof createGunzip> | ReturnType<typeof createZstdDecompress>;

/** Writes bytes to the unpacker and waits until it has consumed them. Resolves to false if it failed; the error reaches its reader. */
function write(unpacker: Unpacker, bytes: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    unpacker.write(bytes, (error) => resolve(!error));
  });
}

/** Feeds a zstd file to the unpacker, so that no write contains bytes of two frames. */
async function feedFrames(next: NextBytes, unpacker: Unpacker, maxFrames: number): Promise<void> {
  const frames = new ZstdFrames();
  let offset = 0;
  for (let chunk = next(); chunk !== undefined; chunk = next()) {
    for (let start = 0; start < chunk.length; ) {
      start = advance(frames, chunk, start, offset);
      if (frames.count > maxFrames) throw new UnpackError(`it has more than ${maxFrames} frames`, 'too many frames');
      for (const piece of frames.pieces) if (!(await write(unpacker, piece))) return;
    }
    offset += chunk.length;
    // If all frames of a chunk are empty, no write yields to the event loop.
    await nextTurn();
  }
  if (offset === 0 || !frames.isBetweenFrames) throw new UnpackError('unexpected end of file');
  // Without any input, the unpacker would report a truncated file.
  if (frames.count === 0 && !(await write(unpacker, EMPTY_FRAME))) return;
  unpacker.end();
}

function advance(frames: ZstdFrames, chunk: Buffer, start: number, offset: number): number {
  try {
    return frames.advance(chunk, start);
  } catch (cause) {
    const problem = cause instanceof UnsupportedFrame ? 'unsupported' : 'damaged';
    throw new UnpackError(`${(cause as Error).message}, at or after byte ${offset + start}`, problem, { cause });
  }
}

/** Feeds a gzip file to the unpacker. Only zero padding may follow its last member. */
async function feedMembers(next: NextBytes, unpacker: Unpacker): Promise<void> {
  let offset = 0;
  let hasEnded = false;
  for (let chunk = next(); chunk !== undefined; chunk = next()) {
    offset += chunk.length;
    if (!hasEnded && !(await write(unpacker, chunk))) return;
    // The bytes that the unpacker did not consume follow the end of a member and begin with a zero.
    const restBytes = Math.min(chunk.length, offset - unpacker.bytesWritten);
    hasEnded = restBytes > 0;
    if (chunk.subarray(chunk.length - restBytes).some((byte) => byte !== 0)) {
      throw new UnpackError('there is something after its end');
    }
  }
  unpacker.end();
}
