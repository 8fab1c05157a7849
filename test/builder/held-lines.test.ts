import { describe, expect, it } from 'vitest';
import { HeldLines } from '../../src/builder/scan/held-lines.ts';
import { LINE_MAX_BYTES } from '../../src/record/entry.ts';

type Held = readonly [text: string, part: number, line: number];

/** Returns the lines read back, and how many of them were read before the end. */
function hold(lines: readonly Held[]): { read: Held[]; early: number } {
  const read: Held[] = [];
  const held = new HeldLines((buffer, start, end, part, line) => {
    read.push([buffer.toString('latin1', start, end), part, line]);
  });
  const buffer = Buffer.alloc(LINE_MAX_BYTES + 2);
  for (const [text, part, line] of lines) {
    buffer.fill(0);
    const size = buffer.write(text, 1, 'latin1');
    held.add(buffer, 1, 1 + size, part, line);
  }
  const early = read.length;
  held.readAll();
  held.readAll();
  return { read, early };
}

describe('held lines', () => {
  it('are read in order, each with its place in the drop', () => {
    for (const count of [0, 1, 255, 256, 257, 1000]) {
      const lines = Array.from({ length: count }, (_, i): Held => [`${i}`.repeat(i % 50), i % 7, 2 ** 32 + i]);
      expect(hold(lines).read).toEqual(lines);
    }
  });

  it('need no more memory if they have the maximum length', () => {
    const lines = Array.from(
      { length: 50 },
      (_, i): Held => [String(i % 10).repeat(i % 3 === 0 ? LINE_MAX_BYTES : i), 0, i + 1],
    );
    const { read, early } = hold(lines);
    expect(read).toEqual(lines);
    expect(early).toBeGreaterThan(30);
  });
});
