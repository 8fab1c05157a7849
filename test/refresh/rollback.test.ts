import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { pruneGenerations } from '../../src/refresh/prune.ts';
import { refresh } from '../../src/refresh/refresh.ts';
import { rollback } from '../../src/refresh/rollback.ts';
import { currentGeneration, listLitter } from '../../src/refresh/store.ts';
import { readWithdrawn, withdraw } from '../../src/refresh/withdrawn-drops.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';
import { type Bench, codeOf, createBench, type DropSpec, fakeSteps, PART } from './support.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

describe('a rollback', () => {
  test('activates the previous generation and is not undone by the next refresh', async () => {
    await refresh(bench.options(bench.drop('a', { revision: 1 })), fakeSteps());
    const newer = bench.drop('b', { revision: 2 });
    await refresh(bench.options(newer), fakeSteps());
    const steps = fakeSteps();
    expect(await rollback({ store: bench.store }, steps)).toMatchObject({
      generation: 1,
      previousGeneration: 2,
      revision: 1,
    });
    expect(steps.notified).toEqual([1]);
    const again = fakeSteps();
    expect(await refresh(bench.options(newer), again)).toMatchObject({
      outcome: 'unchanged',
      generation: 1,
      revision: 1,
      notice: { server: 'not_needed' },
      withdrawn: { generation: 2, revision: 2 },
    });
    expect(again.notified).toEqual([]);
    expect(currentGeneration(bench.store)).toBe(1);
  });

  test("can be reversed with the generation's number", async () => {
    await refresh(bench.options(bench.drop('a', { revision: 1 })), fakeSteps());
    const newer = bench.drop('b', { revision: 2 });
    await refresh(bench.options(newer), fakeSteps());
    await rollback({ store: bench.store }, fakeSteps());
    expect(await rollback({ store: bench.store, to: 2 }, fakeSteps())).toMatchObject({ generation: 2 });
    expect(await refresh(bench.options(newer), fakeSteps())).toMatchObject({ outcome: 'unchanged' });
    // Switching to a newer one withdraws nothing.
    expect(readWithdrawn(bench.store)).toEqual([]);
  });

  test('goes to the newest older generation that has a report, and to none without one', async () => {
    for (const revision of [1, 2, 3, 4])
      await refresh(bench.options(bench.drop(`r${revision}`, { revision }), { keep: 4 }), fakeSteps());
    rmSync(join(bench.store, 'generations/3/report.json'));
    expect(await rollback({ store: bench.store }, fakeSteps())).toMatchObject({ generation: 2 });
    expect(await codeOf(rollback({ store: bench.store, to: 3 }, fakeSteps()))).toBe('generation_damaged');
    const verify = async () => ({ ...fakeSteps().identify(join(bench.store, 'generations/2/index.pgx')) });
    expect(await codeOf(rollback({ store: bench.store, to: 1 }, fakeSteps({ verify })))).toBe('generation_damaged');
    expect(currentGeneration(bench.store)).toBe(2);
  });

  test('to a drop that the license does not cover is refused, and leftovers are removed anyway', async () => {
    await refresh(bench.options(bench.drop('a', { revision: 1 })), fakeSteps());
    await refresh(bench.options(bench.drop('b', { revision: 2 })), fakeSteps());
    mkdirSync(join(bench.store, 'generations/.building-3'));
    const assertEntitled = (): never => {
      throw new PagegateError('license_not_entitled');
    };
    expect(await codeOf(rollback({ store: bench.store }, fakeSteps({ assertEntitled })))).toBe('license_not_entitled');
    expect(currentGeneration(bench.store)).toBe(2);
    expect(listLitter(bench.store)).toEqual([]);
  });

  test('protects the served generation from pruning, however old it is', async () => {
    for (const revision of [1, 2, 3])
      await refresh(bench.options(bench.drop(`r${revision}`, { revision })), fakeSteps());
    await rollback({ store: bench.store, to: 1 }, fakeSteps());
    expect(await pruneGenerations(bench.store, 2)).toEqual([2]);
    expect(await pruneGenerations(bench.store, 1)).toEqual([3]);
    expect(await pruneGenerations(bench.store, 0)).toEqual([]);
    expect(currentGeneration(bench.store)).toBe(1);
    // If no generation is served, all of them count toward the number to keep.
    rmSync(join(bench.store, 'current'));
    expect(await pruneGenerations(bench.store, 1)).toEqual([]);
  });

  test('keeps one mark per manifest, and few of them', async () => {
    const mark = (n: number) => ({ manifestSha256: `m${n}`, generation: n, revision: n, withdrawnAt: '' });
    const file = join(bench.store, 'withdrawn.json');
    mkdirSync(bench.store);
    writeFileSync(file, JSON.stringify(Array.from({ length: 64 }, (_, n) => mark(n + 1))));
    await withdraw(bench.store, mark(65));
    await withdraw(bench.store, mark(5));
    expect(readWithdrawn(bench.store).map((one) => one.generation)).toEqual([
      ...Array.from({ length: 64 }, (_, n) => n + 2).filter((n) => n !== 5),
      5,
    ]);
  });

  const mark = `{"manifestSha256":"${'ab'.repeat(32)}","generation":7,"revision":3,"withdrawnAt":"2026-01-01T00:00:00Z"}`;
  test.each<[string, string | Uint8Array]>([
    ['no list', '{}'],
    ['nothing', 'null'],
    ['marks that are not valid', '[null, 1, {}]'],
    ['a generation without end', `[${mark.replace('7', '9007199254740991')}]`],
    ['a generation that is a text', `[${mark.replace('7', '"7"')}]`],
    ...HOSTILE_JSON.map(({ name, spoil }): [string, Uint8Array] => [name, spoil(`[${mark}]`)]),
  ])('a list of withdrawn drops with %s stops a refresh and a rollback', async (_name, content) => {
    for (const revision of [1, 2]) await refresh(bench.options(bench.drop(`n${revision}`, { revision })), fakeSteps());
    const file = join(bench.store, 'withdrawn.json');
    writeFileSync(file, content);
    expect(() => readWithdrawn(bench.store)).toThrow(file);
    const next = bench.options(bench.drop('n3', { revision: 3 }));
    expect(await codeOf(refresh(next, fakeSteps()))).toBe('store_damaged');
    expect(await codeOf(rollback({ store: bench.store }, fakeSteps()))).toBe('store_damaged');
    expect(currentGeneration(bench.store)).toBe(2);
    rmSync(file);
    expect(await refresh(next, fakeSteps())).toMatchObject({ generation: 3 });
  });

  test.each(HARMLESS_JSON)('a list of withdrawn drops with $name is read', ({ spoil }) => {
    mkdirSync(bench.store);
    writeFileSync(join(bench.store, 'withdrawn.json'), spoil(`[${mark}]`));
    expect(readWithdrawn(bench.store)).toEqual([JSON.parse(mark)]);
  });

  test.each(['', '0', '-1', '0x10', '1e3', '1000000000', '7\0', '7 8', 'x'.repeat(1000), '999999999'])(
    'the last number %j stops a refresh',
    async (text) => {
      await refresh(bench.options(bench.drop('n1')), fakeSteps());
      writeFileSync(join(bench.store, 'last-number'), text);
      const next = bench.options(bench.drop('n2', { revision: 2 }));
      expect(await codeOf(refresh(next, fakeSteps()))).toBe('store_damaged');
      expect(currentGeneration(bench.store)).toBe(1);
    },
  );

  test('never gives the number of a removed generation to another one', async () => {
    for (const revision of [1, 2]) await refresh(bench.options(bench.drop(`n${revision}`, { revision })), fakeSteps());
    await rollback({ store: bench.store }, fakeSteps());
    await pruneGenerations(bench.store, 1);
    rmSync(join(bench.store, 'withdrawn.json'));
    const report = await refresh(bench.options(bench.drop('n3', { revision: 3 })), fakeSteps());
    expect(report).toMatchObject({ generation: 3, previousGeneration: 1 });
    // A store of an earlier version has only the generations and the marks.
    await rollback({ store: bench.store }, fakeSteps());
    await pruneGenerations(bench.store, 1);
    rmSync(join(bench.store, 'last-number'));
    const next = await refresh(bench.options(bench.drop('n4', { revision: 4 })), fakeSteps());
    expect(next).toMatchObject({ generation: 4, previousGeneration: 1 });
  });

  test('with --rollback an older or withdrawn drop is accepted', async () => {
    const older = bench.drop('a', { revision: 1 });
    await refresh(bench.options(bench.drop('b', { revision: 2 })), fakeSteps());
    expect(await refresh(bench.options(older, { rollback: true }), fakeSteps())).toMatchObject({ revision: 1 });
    await rollback({ store: bench.store, to: 1 }, fakeSteps());
    await refresh(bench.options(bench.drop('c', { revision: 3 })), fakeSteps());
    await rollback({ store: bench.store }, fakeSteps());
    const withdrawn = bench.options(bench.drop('c', { revision: 3 }));
    expect(await refresh(withdrawn, fakeSteps())).toMatchObject({ outcome: 'unchanged', withdrawn: { revision: 3 } });
    await refresh({ ...withdrawn, rollback: true }, fakeSteps());
    expect(readWithdrawn(bench.store)).toEqual([]);
  });

  test('from an older drop is also not undone by the next refresh, and is marked before the switch', async () => {
    const [older, newer] = [bench.drop('a', { revision: 1 }), bench.drop('b', { revision: 2 })];
    await refresh(bench.options(older), fakeSteps());
    await refresh(bench.options(newer, { keep: 1 }), fakeSteps());
    expect(await codeOf(rollback({ store: bench.store }, fakeSteps()))).toBe('nothing_to_roll_back');
    const marksAtSwitch: number[] = [];
    const onStep = (step: string): void => {
      if (step === 'switch') marksAtSwitch.push(...readWithdrawn(bench.store).map((one) => one.revision));
    };
    const back = await refresh(bench.options(older, { rollback: true }), fakeSteps({ onStep }));
    expect(back).toMatchObject({ outcome: 'activated', generation: 3, revision: 1 });
    expect(marksAtSwitch).toEqual([2]);
    expect(readWithdrawn(bench.store)).toMatchObject([{ dataset: 'test', generation: 2, revision: 2 }]);
    expect(await refresh(bench.options(newer), fakeSteps())).toMatchObject({
      outcome: 'unchanged',
      generation: 3,
      revision: 1,
      withdrawn: { generation: 2, revision: 2 },
    });
    // A rollback without a number does not go to it, although it has the previous number.
    expect(await codeOf(rollback({ store: bench.store }, fakeSteps()))).toBe('nothing_to_roll_back');
    // With its number it is activated again, and the generation that it replaces is older.
    expect(await rollback({ store: bench.store, to: 2 }, fakeSteps())).toMatchObject({ revision: 2 });
    expect(readWithdrawn(bench.store)).toEqual([]);
  });

  test('by a refresh with --rollback marks the replaced drop only if the other drop is older', async () => {
    const cases: readonly (readonly [DropSpec, readonly number[]])[] = [
      [{ revision: 1 }, [2]],
      [{ revision: 3 }, []],
      [{ revision: 2, parts: { 'other.ndjson.gz': PART } }, []],
      [{ revision: 1, dataset: 'other' }, []],
    ];
    for (const [i, [spec, marked]] of cases.entries()) {
      const store = join(bench.root, `store-${i}`);
      await refresh(bench.options(bench.drop(`a${i}`, { revision: 2 }), { store }), fakeSteps());
      const next = bench.options(bench.drop(`b${i}`, spec), { store, rollback: true, otherDataset: true });
      for (const generation of [2, 3]) {
        expect(await refresh({ ...next, rebuild: generation === 3 }, fakeSteps())).toMatchObject({ generation });
        expect([spec, readWithdrawn(store).map((one) => one.revision)]).toEqual([spec, marked]);
      }
    }
  });

  test('that ended between its mark and the switch has changed nothing, and can be run again', async () => {
    const [older, newer] = [bench.drop('a', { revision: 1 }), bench.drop('b', { revision: 2 })];
    await refresh(bench.options(older), fakeSteps());
    await refresh(bench.options(newer), fakeSteps());
    const onStep = (step: string): void => {
      if (step === 'switch') throw new PagegateError('interrupted');
    };
    const back = bench.options(older, { rollback: true });
    expect(await codeOf(refresh(back, fakeSteps({ onStep })))).toBe('interrupted');
    expect(await refresh(bench.options(newer), fakeSteps())).toMatchObject({ revision: 2, withdrawn: null });
    expect(await refresh(back, fakeSteps())).toMatchObject({ outcome: 'activated', generation: 1, reused: true });
    expect(await refresh(bench.options(newer), fakeSteps())).toMatchObject({ withdrawn: { revision: 2 } });
  });

  test('is refused if no older generation is kept, and for a number that is not kept', async () => {
    await refresh(bench.options(bench.drop('a')), fakeSteps());
    const refused = rollback({ store: bench.store }, fakeSteps());
    await expect(refused).rejects.toThrow(/^No older generation is kept that was not rolled back before/);
    expect(await codeOf(rollback({ store: bench.store, to: 9 }, fakeSteps()))).toBe('generation_missing');
  });

  test('to a damaged generation is refused and changes nothing', async () => {
    await refresh(bench.options(bench.drop('a', { revision: 1 })), fakeSteps());
    await refresh(bench.options(bench.drop('b', { revision: 2 })), fakeSteps());
    rmSync(join(bench.store, 'generations/1/index.pgx'));
    writeFileSync(join(bench.store, 'generations/1/index.pgx'), '{');
    expect(await codeOf(rollback({ store: bench.store }, fakeSteps()))).toBe('generation_damaged');
    expect(currentGeneration(bench.store)).toBe(2);
    expect(existsSync(join(bench.store, 'withdrawn.json'))).toBe(false);
  });
});
