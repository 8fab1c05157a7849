/** Damaged sections with valid checksums, as made by an attacker who knows the format: no crash, no hang, no misleading error. */
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { HEADER, type SectionName } from '../../src/index/format/layout.ts';
import { verifyIndexBytes } from '../../src/index/verify.ts';
import { Random } from '../../tools/random.ts';
import { smallNames, tinyIndexBytes } from '../support/tiny-index.ts';
import {
  expectations,
  lookUp,
  sampleEntries,
  sealHeader,
  sealSection,
  sectionsOf,
  sharedBytes,
  tryOpen,
} from './support.ts';

const ROUNDS = 1500;
const original = tinyIndexBytes(sampleEntries(60), { names: smallNames });
const keys = [...expectations(original).keys()];
const out = new Uint8Array(64 * 1024);

/** Overwrites a few bytes of a range, with random bytes or with ones that are special in MessagePack and small integers. */
function scribble(bytes: Uint8Array, start: number, end: number, random: Random): void {
  const special = [0x00, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xd4, 0xdd, 0xdf, 0xff];
  const count = 1 + random.below(4);
  for (let i = 0; i < count; i++) {
    const value = random.chance(50) ? random.pick(special) : random.below(256);
    bytes[start + random.below(end - start)] = value;
  }
}

async function exercise(bytes: Uint8Array): Promise<string> {
  const index = tryOpen(bytes);
  if (typeof index === 'string') return index;
  for (const key of keys) lookUp(index, key, '', out);
  lookUp(index, 'nobody.example', '', out);
  await verifyIndexBytes(sharedBytes(bytes)).catch((error: unknown) => {
    if (!(error instanceof PagegateError)) throw error;
  });
  return 'opens';
}

describe('a forgery with valid checksums', () => {
  it.each<SectionName | 'header'>(['header', 'dictionary', 'metadata', 'blocks'])(
    'of the %s is refused or harmless',
    async (name) => {
      const random = new Random(name.length);
      const outcomes = new Map<string, number>();
      const range = name === 'header' ? { offset: 8, size: HEADER.checksum.offset - 8 } : sectionsOf(original)[name];
      for (let i = 0; i < ROUNDS; i++) {
        const bytes = original.slice();
        scribble(bytes, range.offset, range.offset + range.size, random);
        if (name === 'header') sealHeader(bytes);
        else sealSection(bytes, name);
        const outcome = await exercise(bytes);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      expect(
        [...outcomes.keys()].filter((outcome) => !['opens', 'index_corrupt', 'index_newer_version'].includes(outcome)),
      ).toEqual([]);
      expect([...outcomes.values()].reduce((sum, count) => sum + count)).toBe(ROUNDS);
      expect(outcomes.get(name === 'blocks' ? 'opens' : 'index_corrupt')).toBeGreaterThan(ROUNDS / 10);
    },
  );
});
