/** Writes a range of bytes to an open file completely. One call of the system may write only a part. */
import { writeSync } from 'node:fs';

/**
 * Writes `bytes[start, start + size)` at `position` of the file.
 *
 * @throws the system's error
 */
export function writeFully(descriptor: number, bytes: Uint8Array, start: number, size: number, position: number): void {
  let done = 0;
  while (done < size) done += writeSync(descriptor, bytes, start + done, size - done, position + done);
}
