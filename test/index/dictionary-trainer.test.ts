import { describe, expect, it } from 'vitest';
import { DictionaryTrainer, encodeDictionary, fieldsFromEntry, RecordFields } from '../../src/index/write.ts';
import type { Entry } from '../../src/record/entry.ts';
import { entryOf, shippedNames } from '../support/tiny-index.ts';

const LETTERS = 'etaoinshrdlu';

/** Entries whose names are built from common syllables, in order. */
function entries(count: number): Entry[] {
  const names = Array.from({ length: count }, (_, i) => {
    const syllables = [...(i * 7919 + 13).toString(12)].map((digit) => `${LETTERS[Number.parseInt(digit, 12)]}on`);
    return `${syllables.join('')}.example`;
  });
  return [...new Set(names)].sort().map((name) => entryOf(name, { login: `https://${name}/login` }));
}

function train(all: readonly Entry[], afterEach: (fields: RecordFields) => void): Uint8Array {
  const trainer = new DictionaryTrainer(shippedNames);
  const fields = new RecordFields();
  for (const entry of all) {
    fieldsFromEntry(entry, fields);
    trainer.add(fields);
    afterEach(fields);
  }
  return encodeDictionary(trainer.train());
}

describe('the dictionary', () => {
  it('is trained from the records, even if their memory is reused', () => {
    const all = entries(3000);
    expect(train(all, ({ source }) => source.fill(0x7a))).toEqual(train(all, () => {}));
  });

  it('is trained from all of a sorted drop, not only from its beginning', () => {
    // Together they exceed what the trainer keeps.
    const ordinary = entries(20_000);
    const last = Array.from({ length: 20_000 }, (_, i) => entryOf(`zyx-qwv-${i}.example`));
    const trainer = new DictionaryTrainer(shippedNames);
    const fields = new RecordFields();
    for (const entry of [...ordinary, ...last]) {
      fieldsFromEntry(entry, fields);
      trainer.add(fields);
    }
    const symbols = trainer.train().domainSymbols.symbols.map((symbol) => Buffer.from(symbol).toString());
    expect(symbols.some((symbol) => symbol.startsWith('zyx'))).toBe(true);
    expect(symbols.some((symbol) => symbol.includes('onon') || symbol.includes('on.'))).toBe(true);
  });
});
