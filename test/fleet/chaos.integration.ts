/** A short run of `make chaos-fleet`: each fault once, on real nodes, with a real database and its standby, over connections that break. */
import { expect, it } from 'vitest';
import { FLEET_FAULTS } from '../../tools/chaos/fleet/faults.ts';
import { runFleetChaos } from '../../tools/chaos/fleet.ts';

const ROUNDS = Object.keys(FLEET_FAULTS).length;

it('all counts are right after every fault', { timeout: 1_200_000 }, async () => {
  const report = await runFleetChaos({ rounds: ROUNDS, seed: 7 });
  expect(report.failures).toEqual([]);
  expect(Object.keys(report.faults)).toHaveLength(ROUNDS);
  expect(report.read).toBeGreaterThan(1_000);
});
