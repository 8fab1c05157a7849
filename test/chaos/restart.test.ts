/** A short run of `make chaos-restart`: the real program, clients with kept and new connections, two versions side by side. */
import { expect, test } from 'vitest';
import { runRestarts } from '../../tools/chaos/restart.ts';

test('restarts and upgrades lose no request, a broken version does not take over, kills lose no charge', {
  timeout: 600_000,
}, async () => {
  // One of each kind: plain with two workers, and over TLS with one.
  const report = await runRestarts({ restarts: 2, upgrades: 2, broken: 1, kills: 2, seed: 7 });
  expect(report.failures).toEqual([]);
  expect(report.handOverMs).toHaveLength(4);
  expect(report.read).toBeGreaterThan(100);
});
