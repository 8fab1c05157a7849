import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteKey, ByteMap, NOT_FOUND } from '../../src/bytes/byte-map.ts';
import { NOT_COUNTED, TextCounts } from '../../src/index/write/text-counts.ts';

const key = new ByteKey();

/** Takes a text from anywhere in memory: between other bytes, at any offset, at the very end or not. */
function take(text: string, before: string, after: string): ByteKey {
  const bytes = Buffer.from(`${before}${text}${after}`, 'latin1');
  key.take(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), before.length, before.length + text.length);
  return key;
}

// Few letters, and lengths around multiples of a word, so that texts differ little.
const text = fc.string({ unit: fc.constantFrom('a', 'b', '\0', '\xff', '"'), maxLength: 40 });
const around = fc.string({ unit: fc.constantFrom('a', 'b', '"', '\0'), maxLength: 20 });

describe('a byte map', () => {
  it('returns the same as a map of strings, wherever the bytes are in memory', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(2), text)),
        fc.array(fc.tuple(fc.nat(2), text)),
        around,
        around,
        (in_, out, a, b) => {
          const expected = new Map<string, number>();
          in_.forEach(([tag, name], value) => {
            if (!expected.has(`${tag}${name}`)) expected.set(`${tag}${name}`, value);
          });
          const map = new ByteMap(in_.map(([tag, name], value) => ({ tag, text: name, value })));
          for (const [tag, name] of [...in_, ...out]) {
            expect(map.get(tag, take(name, a, b))).toBe(expected.get(`${tag}${name}`) ?? NOT_FOUND);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('finds a quoted text as if its end were given', () => {
    const plain = fc.string({ unit: fc.constantFrom('a', '\0', '\xff', '!', '#', '\xa2', '\x23'), maxLength: 40 });
    fc.assert(
      fc.property(plain, around, around, fc.nat(20), (name, before, behind, cut) => {
        const bytes = Buffer.from(`${before}${name}"${behind}`, 'latin1');
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
        const start = before.length;
        const map = new ByteMap([{ tag: 0, text: name, value: 7 }]);
        const end = Math.max(start, bytes.length - cut);
        const close = key.takeQuoted(view, start, end);
        expect(close).toBe(start + name.length < end ? start + name.length : -1);
        if (close !== -1) expect(map.get(0, key)).toBe(7);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('counts of texts', () => {
  it('equal those of a map of strings, even if the space is used up', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), text)), fc.nat(20), fc.nat(200), (added, maxTexts, maxBytes) => {
        const counts = new TextCounts(maxTexts, maxBytes);
        const expected: Map<string, number>[] = [new Map(), new Map(), new Map()];
        let left = maxTexts;
        let leftBytes = maxBytes;
        for (const [kind, name] of added) {
          const count = expected[kind]!.get(name) ?? 0;
          const isCounted = count > 0 || (left > 0 && leftBytes >= name.length);
          if (count === 0 && isCounted) {
            left -= 1;
            leftBytes -= name.length;
          }
          if (isCounted) expected[kind]!.set(name, count + 1);
          expect(counts.add(kind, take(name, '', '')) !== NOT_COUNTED).toBe(isCounted);
        }
        expected.forEach((of, kind) => {
          expect([...counts.texts(kind)]).toEqual([...of.keys()]);
          const often = [...of].filter(([, count]) => count >= 2);
          expect(counts.ranked(kind, 2)).toEqual(often.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)));
        });
      }),
    );
    const again = new TextCounts(1, 9);
    again.addAgain(again.add(0, take('x', '', '')));
    again.addAgain(again.add(0, take('y', '', '')));
    expect(again.ranked(0, 1)).toEqual([['x', 2]]);
  });
});
