import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refresh } from '../../src/refresh/refresh.ts';
import { rollback } from '../../src/refresh/rollback.ts';
import { currentGeneration, listGenerations, switchCurrent } from '../../src/refresh/store.ts';
import { HOSTILE_JSON } from '../support/hostile-json.ts';
import { type Bench, codeOf, createBench, fakeSteps } from './support.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

test.each(['generations/1/..', 'generations/01', 'generations', 'other/1', '../generations/1', '/generations/1'])(
  'a store whose current link is %s is damaged',
  (target) => {
    mkdirSync(bench.store);
    symlinkSync(target, join(bench.store, 'current'));
    expect(() => currentGeneration(bench.store)).toThrow(expect.objectContaining({ code: 'store_damaged' }));
  },
);

test('a store whose current link is a folder is damaged, and the folder is not replaced', async () => {
  mkdirSync(join(bench.store, 'current'), { recursive: true });
  expect(await codeOf(switchCurrent(bench.store, 1))).toBe('store_damaged');
  expect(await codeOf(refresh(bench.options(bench.drop('a')), fakeSteps()))).toBe('store_damaged');
});

test('a store whose current link was copied as a folder: the error says what to do, and that works', async () => {
  await refresh(bench.options(bench.drop('a')), fakeSteps());
  const link = join(bench.store, 'current');
  rmSync(link);
  mkdirSync(link);
  expect(() => currentGeneration(bench.store)).toThrow(/Move it away, .*pagegate rollback --to N/);
  rmSync(link, { recursive: true });
  expect(await rollback({ store: bench.store, to: 1 }, fakeSteps())).toMatchObject({ outcome: 'activated' });
  expect(currentGeneration(bench.store)).toBe(1);
});

test('generations are listed in order of their numbers', () => {
  for (const name of ['10', '9', '0', '01', '1234567890', 'x']) {
    mkdirSync(join(bench.store, 'generations', name), { recursive: true });
  }
  expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([9, 10]);
});

describe('a report', () => {
  const file = () => join(bench.store, 'generations/1/report.json');
  const reported = (content: string | Uint8Array) => {
    rmSync(file());
    writeFileSync(file(), content);
    return listGenerations(bench.store)[0]!.report;
  };
  beforeEach(() => refresh(bench.options(bench.drop('a')), fakeSteps()));

  test.each([
    ['another format', { format: 'pagegate-generation/2' }],
    ['no manifest', { manifestSha256: undefined }],
    ['a revision that is a text', { revision: '1' }],
    ['a dataset that is a list', { dataset: ['test'] }],
    ['an invalid count', { recordCount: null }],
  ])('with %s is not accepted', (_name, change) => {
    const report = JSON.parse(readFileSync(file(), 'utf8')) as object;
    expect(reported(JSON.stringify(report))).toEqual(report);
    expect(reported(JSON.stringify({ ...report, ...change }))).toBeUndefined();
  });

  test.each(HOSTILE_JSON)('with $name is not accepted', ({ spoil }) => {
    expect(reported(spoil(JSON.stringify(JSON.parse(readFileSync(file(), 'utf8')))))).toBeUndefined();
  });

  test('that is a pipe does not block the reader', () => {
    rmSync(file());
    execFileSync('mkfifo', [file()]);
    expect(listGenerations(bench.store)[0]!.report).toBeUndefined();
  });
});

test('a store that cannot be written has its own error code', async () => {
  writeFileSync(join(bench.root, 'file'), '');
  const store = join(bench.root, 'file/index');
  expect(await codeOf(refresh({ ...bench.options(bench.drop('a')), store }, fakeSteps()))).toBe('store_unavailable');
});
