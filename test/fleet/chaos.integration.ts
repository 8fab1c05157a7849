/** A short run of `make chaos-fleet`: each deed once, on real nodes, a real database with a standby, and lines that break. */
import { expect, it } from 'vitest';
import { DEEDS } from '../../tools/chaos/fleet/deeds.ts';
import { runFleetChaos } from '../../tools/chaos/fleet.ts';

const ROUNDS = Object.keys(DEEDS).length;

it('every deed leaves the counts right', { timeout: 1_200_000 }, async () => {
  const report = await runFleetChaos({ rounds: ROUNDS, seed: 7 });
  expect(report.failures).toEqual([]);
  expect(Object.keys(report.deeds)).toHaveLength(ROUNDS);
  expect(report.read).toBeGreaterThan(1_000);
});
