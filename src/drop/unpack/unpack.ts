/** Unpacks what a part's name says it is packed with: gzip (any number of members), zstd (any number of frames), or nothing. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { EMPTY_FRAME, UnsupportedFrame, ZstdFrames } from './zstd-frames.ts';

/** Bytes read at once, and unpacked at once: small enough to stay in the processor's cache from the checksum to the last look at a line. */
export const CHUNK_BYTES = 1 << 18;
/** Plain chunks between two turns of the event loop: an interrupt waits for some hundredths of a second. */
const CHUNKS_PER_TURN = 16;

/** The next bytes of a file as it lies there, valid until the call after; undefined at its end. */
export type NextBytes = () => Buffer | undefined;

/** True where a part of that name is packed. */
export const isPacked = (name: string): boolean => name.endsWith('.gz') || name.endsWith('.zst');

/** Why a part cannot be unpacked: it is damaged or cut, packed as this program cannot, or in more frames than are allowed. */
export type UnpackProblem = 'damaged' | 'unsupported' | 'too many frames';

/** A part does not unpack to its end, or has something else after it. */
export class UnpackError extends Error {
  readonly problem: UnpackProblem;

  /** `message` says what is wrong, without the part's name. */
  constructor(message: string, problem: UnpackProblem = 'damaged', options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/**
 * Yields the unpacked bytes of a file in chunks; each is valid until the next one is asked for. What it reads, it reads to the end. A zstd file
 * may have `maxFrames` frames that unpack to something.
 *
 * @throws UnpackError where that is not possible; and whatever `next` throws
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
  // It can fail once nobody iterates over it any more; what matters of that, the feeding knows.
  unpacker.on('error', () => {});
  const fed = isZstd ? feedFrames(next, unpacker, maxFrames) : feedMembers(next, unpacker);
  fed.catch((error: Error) => unpacker.destroy(error));
  try {
    for await (const chunk of unpacker as AsyncIterable<Buffer>) {
      yield chunk;
      // The unpacker takes new memory where this was the last of the old; given back now, it does not wait for the garbage collector.
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

/** Gives bytes to the unpacker; they are used up when this is done. False where it failed, which whoever iterates over it learns. */
function write(unpacker: Unpacker, bytes: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    unpacker.write(bytes, (error) => resolve(!error));
  });
}

/** Feeds a zstd file, so that no frame shares its bytes with the next one. */
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
    // Where nothing is fed nothing waits, and nobody else would get a turn.
    await nextTurn();
  }
  if (offset === 0 || !frames.isBetweenFrames) throw new UnpackError('unexpected end of file');
  // It takes it for a file that is cut if it was given nothing.
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

/** Feeds a gzip file. After its last member it may be padded with zeros, and with nothing else. */
async function feedMembers(next: NextBytes, unpacker: Unpacker): Promise<void> {
  let offset = 0;
  let hasEnded = false;
  for (let chunk = next(); chunk !== undefined; chunk = next()) {
    offset += chunk.length;
    if (!hasEnded && !(await write(unpacker, chunk))) return;
    // What the unpacker did not take comes after the end of a member and begins with a zero.
    const restBytes = Math.min(chunk.length, offset - unpacker.bytesWritten);
    hasEnded = restBytes > 0;
    if (chunk.subarray(chunk.length - restBytes).some((byte) => byte !== 0)) {
      throw new UnpackError('there is something after its end');
    }
  }
  unpacker.end();
}
