/** A short chaos run against the real server: each deed once. `make chaos` does it 200 times. */
import { describe, expect, it } from 'vitest';
import { DEEDS, runChaos, runOversell } from '../../tools/chaos/metering.ts';

describe('metering survives', () => {
  it('the death, the stopping and the starving of every process: what was read is charged, and nearly nothing else', async () => {
    const report = await runChaos({ rounds: DEEDS.length, seed: 7, durability: 'full' });
    expect(report.failures).toEqual([]);
    expect(Object.keys(report.deeds).sort()).toEqual([...DEEDS].sort());
    expect(report.read).toBeGreaterThan(0);
    expect(report.unavailable).toBeGreaterThan(0);
  });

  it('crashes with the relaxed durability, too', async () => {
    const report = await runChaos({ rounds: 3, seed: 8, durability: 'relaxed' });
    expect(report.failures).toEqual([]);
    expect(report.read).toBeGreaterThan(0);
  });

  it.each(['full', 'relaxed'] as const)(
    'more requests than units over two workers, durability %s',
    async (durability) => {
      expect((await runOversell({ times: 2, durability })).failures).toEqual([]);
    },
  );
});
