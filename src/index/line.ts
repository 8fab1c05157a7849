/** A line of the directory, encoded and decoded side by side. */
import { LINE, LINE_CHECK, LINE_SIZE_BYTES, LINE_SIZE_WORDS } from './layout.ts';

const BASE_WORD = LINE.base.offset / 4;
const BASE_HIGH_BYTE = LINE.base.offset + 4;

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

/**
 * The slots of a line that may have a fingerprint, as bits: slot 4 w + b is bit 8 b + w. All that have it are among them; a slot above one that
 * has it may be as well. One number instead of a loop: nearly always it is 0 for a miss and has one bit for a hit, which leaves
 * the machine no branch to guess.
 */
export function slotsWithFingerprint(words: Uint32Array, line: number, fingerprint: number): number {
  const i = line * LINE_SIZE_WORDS;
  const pattern = Math.imul(fingerprint, 0x01010101);
  return (
    (zeroBytes(words[i]! ^ pattern) >>> 7) |
    (zeroBytes(words[i + 1]! ^ pattern) >>> 6) |
    (zeroBytes(words[i + 2]! ^ pattern) >>> 5) |
    (zeroBytes(words[i + 3]! ^ pattern) >>> 4) |
    (zeroBytes(words[i + 4]! ^ pattern) >>> 3) |
    (zeroBytes(words[i + 5]! ^ pattern) >>> 2) |
    (zeroBytes(words[i + 6]! ^ pattern) >>> 1)
  );
}

/** The slot of the lowest bit of `slotsWithFingerprint`. */
export function slotOfLowestBit(slots: number): number {
  const bit = 31 - Math.clz32(slots & -slots);
  return (bit & 7) * 4 + (bit >>> 3);
}

/** The highest bit of each byte that is zero, and sometimes of one above such a byte. */
function zeroBytes(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080;
}

/** The same as `readLineBase`, from the whole directory as words and as bytes. */
export function lineBase(words: Uint32Array, directory: Uint8Array, line: number): number {
  return (
    words[line * LINE_SIZE_WORDS + BASE_WORD]! + directory[line * LINE_SIZE_BYTES + BASE_HIGH_BYTE]! * 0x1_0000_0000
  );
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
