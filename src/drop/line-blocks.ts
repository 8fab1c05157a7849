/** Cuts a stream of bytes into blocks of whole lines, each in memory of its own, so that it can be given to another thread. */
import { LINE_MAX_BYTES } from '../record/entry.ts';

const BLOCK_BYTES = 1 << 20;
const LF = 0x0a;
/** Of a line that is longer than a block; it stays one that is too long. */
const KEPT_BYTES = LINE_MAX_BYTES + 2;

/** Lines that lie one after the other. */
export interface LineBlock {
  /** Alone in its memory. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Number of its first line, from 1. */
  readonly firstLine: number;
}

/** Yields the lines of a stream; the last one may lack its line end, and of one that is far too long only the beginning is kept. */
export async function* lineBlocks(chunks: AsyncIterable<Buffer>, blockBytes = BLOCK_BYTES): AsyncGenerator<LineBlock> {
  const sizeBytes = Math.max(blockBytes, 2 * KEPT_BYTES);
  let block = Buffer.allocUnsafeSlow(sizeBytes);
  let filled = 0;
  let firstLine = 1;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const copied = chunk.copy(block, filled, at);
      at += copied;
      filled += copied;
      if (filled < sizeBytes) continue;
      const end = block.lastIndexOf(LF) + 1;
      if (end === 0) {
        filled = KEPT_BYTES;
        continue;
      }
      const next = Buffer.allocUnsafeSlow(sizeBytes);
      filled = block.copy(next, 0, end);
      // Counted before it is given away.
      const lines = lineEnds(block, end);
      yield { bytes: block.subarray(0, end), firstLine };
      firstLine += lines;
      block = next;
    }
  }
  if (filled > 0) yield { bytes: block.subarray(0, filled), firstLine };
}

function lineEnds(bytes: Buffer, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(LF); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) count += 1;
  return count;
}
