/** Splits a stream of bytes into blocks of complete lines, in memory from the caller, so that another thread can read them. */
import { CARRY_MAX_BYTES } from './line-splitter.ts';

const LF = 0x0a;
/** How much is kept of a line that is longer than a block: enough for the line splitter to recognize it as too long. */
const KEPT_BYTES = CARRY_MAX_BYTES + 1;

/** A block of consecutive lines. */
export interface LineBlock<Space> {
  /** The memory that holds the lines, from its beginning on. */
  readonly space: Space;
  readonly sizeBytes: number;
  /** Number of the first line, from 1. */
  readonly firstLine: number;
}

/**
 * Yields the lines of a stream in blocks. The last line may lack its line end. If a line is far too long, only its beginning is kept.
 * `reserve` returns the memory of a block, at least twice the size of the longest line. Memory is not used any more after it is yielded.
 */
export async function* lineBlocks<Space extends { readonly bytes: Buffer }>(
  chunks: AsyncIterable<Buffer>,
  reserve: () => Space,
): AsyncGenerator<LineBlock<Space>> {
  let space = reserve();
  let filled = 0;
  let firstLine = 1;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const copied = chunk.copy(space.bytes, filled, at);
      at += copied;
      filled += copied;
      if (filled < space.bytes.length) continue;
      const end = space.bytes.lastIndexOf(LF) + 1;
      if (end === 0) {
        filled = KEPT_BYTES;
        continue;
      }
      const block = { space, sizeBytes: end, firstLine };
      firstLine += lineEnds(space.bytes, end);
      space = reserve();
      filled = block.space.bytes.copy(space.bytes, 0, end);
      yield block;
    }
  }
  if (filled > 0) yield { space, sizeBytes: filled, firstLine };
}

function lineEnds(bytes: Buffer, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(LF); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) count += 1;
  return count;
}
