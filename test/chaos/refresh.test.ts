/** A short run of `make chaos-refresh`: the real program, a real server with two workers, clients, SIGKILL at random moments. */
import { expect, test } from 'vitest';
import { runRefreshChaos } from '../../tools/chaos/refresh.ts';

test('the server is not affected, the next refresh succeeds, prune leaves no leftovers', {
  timeout: 240_000,
}, async () => {
  const report = await runRefreshChaos({ kills: 2, seed: 7, workers: 2, domains: 200 });
  expect(report).toMatchObject({ killed: 2, wrong: 0, wrongExamples: [], failures: [] });
  expect(report.requests).toBeGreaterThan(100);
});
