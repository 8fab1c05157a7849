/** A refresh killed with SIGKILL before each of its changes of the file system, one run per change. */
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refresh } from '../../src/refresh/refresh.ts';
import { currentGeneration, listGenerations, listLitter, removeLitter } from '../../src/refresh/store.ts';
import { type Bench, createBench, fakeSteps } from './support.ts';

const CHILD = fileURLToPath(new URL('./killed-child.ts', import.meta.url));
const CHANGES_MAX = 100;

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

const servedRevision = (store: string): number =>
  JSON.parse(readFileSync(join(store, 'current', 'index.pgx'), 'utf8')).revision;

test('at every change: one of the two generations is served intact, and the next refresh succeeds and leaves no leftovers', async () => {
  const first = bench.drop('first', { revision: 1, key: null });
  const second = bench.drop('second', { revision: 2, key: null });
  const options = { keep: 1, trustedKeys: [], unsigned: true };
  await refresh({ ...options, drop: first, store: bench.store }, fakeSteps());
  const seen = new Set<number>();
  let kills = 0;
  for (let n = 1; n <= CHANGES_MAX; n += 1) {
    const store = join(bench.root, `store-${n}`);
    cpSync(bench.store, store, { recursive: true, verbatimSymlinks: true });
    const { status, signal, stderr } = spawnSync(process.execPath, [CHILD, store, second, String(n)], {
      encoding: 'utf8',
    });
    if (signal !== 'SIGKILL') {
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      break;
    }
    kills += 1;
    seen.add(servedRevision(store));
    await refresh({ ...options, drop: second, store }, fakeSteps());
    expect(servedRevision(store)).toBe(2);
    await removeLitter(store);
    expect(listLitter(store)).toEqual([]);
    expect(listGenerations(store).map((one) => [one.generation, one.current, one.report?.revision])).toEqual([
      [currentGeneration(store), true, 2],
    ]);
  }
  // Some of the kills were before the switch and some after it; otherwise the test would show nothing.
  expect([...seen].sort()).toEqual([1, 2]);
  expect(kills).toBeGreaterThan(15);
  expect(kills).toBeLessThan(CHANGES_MAX);
});
