import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LineSink, LineSplitter } from '../../src/drop/line-splitter.ts';
import { LINE_MAX_BYTES } from '../../src/record/entry.ts';

/** Records its input. */
class Notebook implements LineSink {
  readonly notes: string[] = [];

  line(buffer: Buffer, start: number, end: number, number: number): void {
    this.notes.push(`${number}: ${buffer.toString('latin1', start, end)}`);
  }

  overlong(number: number): void {
    this.notes.push(`${number}: too long`);
  }

  repair(name: string): void {
    this.notes.push(name);
  }
}

function split(chunks: readonly Buffer[]): string[] {
  const notebook = new Notebook();
  const splitter = new LineSplitter(notebook);
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return notebook.notes;
}

describe('the line splitter', () => {
  it.each<[string, string, string[]]>([
    ['line ends, the last one missing', 'a\nbc\nd', ['1: a', '2: bc', '3: d']],
    ['an end at the end', 'a\n', ['1: a']],
    ['nothing', '', []],
    ['blank lines, which count as lines', '\n\r\na\n\n', ['blank_line', 'crlf', 'blank_line', '3: a', 'blank_line']],
    ['a carriage return', 'a\r\nb\r', ['crlf', '1: a', 'crlf', '2: b']],
    ['a carriage return within', 'a\rb\n', ['1: a\rb']],
    ['a byte order mark', '\xef\xbb\xbfa\nb\n', ['bom_stripped', '1: a', '2: b']],
    ['a byte order mark alone', '\xef\xbb\xbf\n', ['bom_stripped', 'blank_line']],
    ['a byte order mark elsewhere', 'a\n\xef\xbb\xbfb\n', ['1: a', '2: \xef\xbb\xbfb']],
  ])('%s', (_, text, notes) => {
    expect(split([Buffer.from(text, 'latin1')])).toEqual(notes);
  });

  it('keeps a line of maximum length, but not a longer one', () => {
    const longest = 'x'.repeat(LINE_MAX_BYTES);
    const notes = split([Buffer.from(`${longest}\n${longest}x\n${longest}\r\nend\n`)]);
    expect(notes).toEqual([`1: ${longest}`, '2: too long', 'crlf', `3: ${longest}`, '4: end']);
  });

  it('keeps a line of maximum length after a byte order mark, but not a longer one', () => {
    const longest = 'x'.repeat(LINE_MAX_BYTES);
    const first = (text: string): string[] => split([Buffer.from(`\xef\xbb\xbf${text}\r\nend\n`, 'latin1')]);
    expect(first(longest)).toEqual(['bom_stripped', 'crlf', `1: ${longest}`, '2: end']);
    expect(first(`${longest}x`)).toEqual(['1: too long', '2: end']);
  });

  it('does not depend on the boundaries of chunks', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '\n',
        '\r\n',
        '\r',
        '\xef\xbb\xbf',
        'a',
        'bcd',
        'x'.repeat(LINE_MAX_BYTES - 1),
        'y'.repeat(LINE_MAX_BYTES + 2),
      ),
      fc.string({ maxLength: 8 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 6 }), (pieces, cuts) => {
        const whole = Buffer.from(pieces.join(''), 'latin1');
        const places = [0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b);
        const chunks = places.slice(1).map((end, i) => whole.subarray(places[i], end));
        expect(split(chunks)).toEqual(split([whole]));
      }),
      { numRuns: 300, seed: 5 },
    );
  });
});
