/** A short chaos run against the real server: each fault once, some more often. `make chaos` runs a thousand rounds. */
import { describe, expect, it } from 'vitest';
import { METERING_FAULTS, runMeteringChaos, runOversell } from '../../tools/chaos/metering.ts';

describe('metering survives', () => {
  it('the death, the suspension and the starvation of every process, and losses of power', async () => {
    const report = await runMeteringChaos({ rounds: METERING_FAULTS.length + 3, seed: 7 });
    expect(report.failures).toEqual([]);
    expect(Object.keys(report.faults).sort()).toEqual([...METERING_FAULTS].sort());
    expect(report.read).toBeGreaterThan(0);
    expect(report.unavailable).toBeGreaterThan(0);
    expect(report.powerLosses).toBeGreaterThan(3);
  });

  it('more requests than lookups left, over two workers', async () => {
    expect((await runOversell(4)).failures).toEqual([]);
  });
});
