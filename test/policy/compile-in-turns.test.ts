/** A policy that is compiled a few steps at a time, between requests, equals one that is compiled at once. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { loadPolicy, loadPolicySteps } from '../../src/policy/load.ts';
import { policySteps } from '../../src/policy/policy.ts';
import { runAtOnce, runInTurns, type Steps } from '../../src/steps.ts';
import { shipped } from './support.ts';

/** More than steps may block the thread. */
const STEP_MS = 8;

function* slowSteps(done: string[]): Steps<string> {
  for (const name of ['first', 'second', 'third']) {
    const beganMs = performance.now();
    while (performance.now() - beganMs < STEP_MS);
    done.push(name);
    yield;
  }
  return 'result';
}

it('other work has its turn between steps', async () => {
  const done: string[] = [];
  const result = runInTurns(slowSteps(done));
  const between = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn();
      done.push('request');
    }
  };
  await Promise.all([result, between()]);
  expect(await result).toBe('result');
  expect(done.indexOf('request')).toBeLessThan(done.indexOf('third'));
  expect(runAtOnce(slowSteps([]))).toBe('result');
});

it('what a step throws ends both ways', async () => {
  function* failing(): Steps<string> {
    yield;
    throw new Error('a step failed');
  }
  await expect(runInTurns(failing())).rejects.toThrow('a step failed');
  expect(() => runAtOnce(failing())).toThrow('a step failed');
});

it('a policy has a step for each host and each token list, and ends as the same policy', async () => {
  const { document, revision } = loadPolicy();
  expect([...policySteps(document)].length).toBeGreaterThan(document.hosts.length / 2);
  const inSteps = await runInTurns(loadPolicySteps({}));
  expect(inSteps.revision).toBe(revision);
  expect(inSteps.tokens.names).toEqual(shipped.tokens.names);
  expect([...inSteps.tokens.entries()]).toEqual([...shipped.tokens.entries()]);
});
