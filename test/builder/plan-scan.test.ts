/** How parts are shared out among the workers of a scan. */
import { describe, expect, it } from 'vitest';
import { planScan } from '../../src/builder/scan/plan-scan.ts';
import { Random } from '../../tools/random.ts';

describe('the plan of a scan', () => {
  it('leaves to one worker what one worker can take', () => {
    expect(planScan([300_335, 300_617], 2)).toEqual({ shared: [], whole: [1, 0] });
    expect(planScan([5, 5, 5, 5], 2)).toEqual({ shared: [], whole: [0, 1, 2, 3] });
    expect(planScan([7, 9, 8], 1)).toEqual({ shared: [], whole: [1, 2, 0] });
    expect(planScan([7, 9, 8], 0)).toEqual({ shared: [], whole: [1, 2, 0] });
  });

  it('has all workers scan what would keep one of them longer than the others', () => {
    expect(planScan([100], 2)).toEqual({ shared: [0], whole: [] });
    expect(planScan([100, 90], 2)).toEqual({ shared: [0, 1], whole: [] });
    expect(planScan([5, 5, 5], 2)).toEqual({ shared: [0], whole: [1, 2] });
    expect(planScan([5, 90, 5], 2)).toEqual({ shared: [1], whole: [0, 2] });
  });

  it('takes each part once, and no worker ends late', () => {
    const random = new Random(1);
    for (let round = 0; round < 500; round += 1) {
      const workers = 1 + random.below(8);
      const sizes = Array.from({ length: random.below(40) }, () => random.below(1_000));
      const { shared, whole } = planScan(sizes, workers);
      expect([...shared, ...whole].sort((a, b) => a - b)).toEqual(sizes.map((_, i) => i));
      const loads = new Array<number>(workers).fill(shared.reduce((sum, i) => sum + sizes[i]! / workers, 0));
      for (const i of whole) loads[loads.indexOf(Math.min(...loads))]! += sizes[i]!;
      const total = sizes.reduce((sum, size) => sum + size, 0);
      expect(Math.max(...loads)).toBeLessThanOrEqual((1.06 * total) / workers);
    }
  });
});
