import { spawnSync } from 'node:child_process';
/** Valid contents of the small sections: integers of any width, and nothing that a later read would fail on. */
import { Packr } from 'msgpackr';
import { describe, expect, it } from 'vitest';
import { decodeDictionary, encodeDictionary } from '../../src/index/format/dictionary.ts';
import { ANSWER_MAX_BYTES } from '../../src/index/format/layout.ts';
import { decodeMap, decodeMetadata, encodeMetadata, type Metadata } from '../../src/index/format/metadata.ts';
import { DictionaryTrainer } from '../../src/index/write/dictionary-trainer.ts';
import { smallNames, tinyMetadata } from '../support/tiny-index.ts';

const metadata: Metadata = { ...tinyMetadata, ...smallNames, maxAnswerSizeBytes: 1000 };

const packr = new Packr({ useRecords: false, variableMapSize: true });
const changed = (changes: Readonly<Record<string, unknown>>): Uint8Array =>
  packr.pack({ ...decodeMap(encodeMetadata(metadata)), ...changes });

describe('metadata', () => {
  it.each([0, 0xffff_ffff, 0x1_0000_0000, 20_261_121_001, Number.MAX_SAFE_INTEGER])(
    'a revision of %i is packed as an integer',
    (revision) => {
      const bytes = encodeMetadata({ ...metadata, revision, generation: revision });
      expect(decodeMetadata(bytes)).toEqual({ ...metadata, revision, generation: revision });
      const at = Buffer.from(bytes).indexOf('revision') + 'revision'.length;
      // A small integer is stored directly, a larger one after the marker of an integer of 8 to 64 bits; 0xcb would mark a float.
      expect(bytes[at]! < 0x80 || (bytes[at]! >= 0xcc && bytes[at]! <= 0xd3)).toBe(true);
    },
  );

  it('accepts integers that another writer packed in 64 bits', () => {
    const bytes = changed({ revision: 7n, max_answer_size: 1000n });
    expect(bytes).toContain(0xd3);
    expect(decodeMetadata(bytes)).toEqual({ ...metadata, revision: 7 });
  });

  it.each([
    ['beyond what a double holds', { revision: 2n ** 60n }, /revision is not a whole number/],
    ['below zero', { generation: -1 }, /generation is not a whole number/],
    ['a float', { revision: 1.5 }, /revision is not a whole number/],
    ['a longest answer that cannot be', { max_answer_size: ANSWER_MAX_BYTES + 1 }, /at most 1048576/],
  ])('refuses a number %s', (_name, changes, message) => {
    expect(() => decodeMetadata(changed(changes))).toThrowError(message);
  });
});

describe('dictionary', () => {
  it('refuses a filtering set that is not ascending', () => {
    const dictionary = new DictionaryTrainer(smallNames).train();
    const withSet = (set: number[]): Uint8Array => encodeDictionary({ ...dictionary, filteringSets: [set] });
    expect(decodeDictionary(withSet([0, 2])).filteringSets).toEqual([[0, 2]]);
    expect(() => decodeDictionary(withSet([2, 0]))).toThrowError('not ascending');
    expect(() => decodeDictionary(withSet([1, 1]))).toThrowError('not ascending');
  });
});

it('is decoded by JavaScript alone: native decoders of msgpack strings may return wrong ones', () => {
  const program = `
    await import('${new URL('../../src/index/read.ts', import.meta.url).href}');
    const { sharedObjects } = process.report.getReport();
    console.log(JSON.stringify(sharedObjects.filter((path) => path.endsWith('.node'))));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  // The mapping needs koffi; no other code for indexes is native.
  expect((JSON.parse(stdout) as string[]).filter((path) => !path.includes('koffi'))).toEqual([]);
});
