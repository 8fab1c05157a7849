/** Reads the lines of a drop with uncompressed parts through one buffer, as a simple loader without the builder would. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';

const BUFFER_SIZE_BYTES = 1 << 20;
const LF = 0x0a;

/** Returns the paths of a drop's uncompressed parts, in order. */
export function partsOf(drop: string): string[] {
  return readdirSync(drop)
    .filter((name) => name.endsWith('.ndjson'))
    .sort()
    .map((name) => join(drop, name));
}

/** Calls `take` with the text of every line of a file; lines longer than the buffer are left out. Returns the file's size in bytes. */
export function forEachLine(path: string, take: (line: string) => void): number {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE_BYTES);
  const descriptor = openSync(path, 'r');
  let filled = 0;
  let size = 0;
  for (;;) {
    const got = readSync(descriptor, buffer, filled, BUFFER_SIZE_BYTES - filled, null);
    size += got;
    const end = filled + got;
    let at = 0;
    for (let newline = buffer.indexOf(LF, at); newline !== -1 && newline < end; newline = buffer.indexOf(LF, at)) {
      take(buffer.toString('utf8', at, newline));
      at = newline + 1;
    }
    if (got === 0) {
      if (end > at) take(buffer.toString('utf8', at, end));
      break;
    }
    buffer.copyWithin(0, at, end);
    filled = end - at;
    if (filled === BUFFER_SIZE_BYTES) filled = 0;
  }
  closeSync(descriptor);
  return size;
}
