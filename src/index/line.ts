/** A line of the directory, encoded and decoded side by side. */
import { LINE, LINE_CHECK, LINE_SIZE_BYTES, LINE_SIZE_WORDS } from './layout.ts';

/** True when the line's check holds. `words` is the directory as 32-bit words. */
export function lineIsIntact(words: Uint32Array, line: number): boolean {
  const i = line * LINE_SIZE_WORDS;
  const folded =
    words[i]! ^
    words[i + 1]! ^
    words[i + 2]! ^
    words[i + 3]! ^
    words[i + 4]! ^
    words[i + 5]! ^
    words[i + 6]! ^
    words[i + 7]! ^
    words[i + 8]! ^
    words[i + 9]! ^
    words[i + 10]! ^
    words[i + 11]! ^
    words[i + 12]! ^
    words[i + 13]! ^
    words[i + 14]! ^
    words[i + 15]!;
  return ((folded ^ (folded >>> 16) ^ line ^ LINE_CHECK) & 0xffff) === 0;
}

/** Where the line's records begin, in bytes from the beginning of the payload. */
export function readLineBase(lines: Uint8Array, at: number): number {
  const base = at + LINE.base.offset;
  return (
    lines[base]! +
    lines[base + 1]! * 0x100 +
    lines[base + 2]! * 0x1_0000 +
    lines[base + 3]! * 0x100_0000 +
    lines[base + 4]! * 0x1_0000_0000
  );
}

/** Sets the base and then the check of the line at `at`, whose number in the whole directory is `line`. */
export function sealLine(lines: Uint8Array, at: number, line: number, base: number): void {
  let rest = base;
  for (let i = 0; i < LINE.base.size; i++) {
    lines[at + LINE.base.offset + i] = rest % 0x100;
    rest = Math.floor(rest / 0x100);
  }
  let low = (LINE_CHECK ^ line) & 0xff;
  let high = ((LINE_CHECK ^ line) >>> 8) & 0xff;
  for (let i = 0; i < LINE.check.offset; i += 2) {
    low ^= lines[at + i]!;
    high ^= lines[at + i + 1]!;
  }
  lines[at + LINE.check.offset] = low;
  lines[at + LINE.check.offset + 1] = high;
}

// The reader takes fingerprints and base a word at a time.
if (LINE.end.offset !== LINE_SIZE_BYTES || LINE.fingerprints.offset !== 0 || LINE.base.offset % 4 !== 0) {
  throw new Error('the fields of a line are not where the reader looks for them');
}
