import { describe, expect, it } from 'vitest';
import { bareTargets, MIX, mixedTargets, zipfTargets } from '../../bench/http/mix.ts';
import { parseTarget } from '../../src/domain/target.ts';
import { parseQuery } from '../../src/server/request/query.ts';

const RECORDS = 10_000;

describe('The requests of the HTTP bench', () => {
  const targets = mixedTargets(RECORDS, 2_000, 1);

  it('all belong to the mix', () => {
    expect(Object.values(MIX).reduce((sum, share) => sum + share, 0)).toBe(100);
  });

  it('are the same for the same seed, and differ for another one', () => {
    expect(mixedTargets(RECORDS, 2_000, 1)).toEqual(targets);
    expect(mixedTargets(RECORDS, 2_000, 2)).not.toEqual(targets);
  });

  it('are hardly ever repeated, except for pages of the sample', () => {
    expect(new Set(targets).size).toBeGreaterThan(0.95 * targets.length);
  });

  it.each([
    ['mixed', targets],
    ['bare', bareTargets(RECORDS, 2_000, 1)],
  ])('are accepted by the program: %s', (_, all) => {
    for (const target of all) {
      const query = parseQuery(target.slice(target.indexOf('?') + 1));
      expect(query.problem).toBeUndefined();
      expect(parseTarget(query.url ?? '')).toHaveProperty('url');
    }
  });

  it('have few favorites in the Zipf mix', () => {
    const counts = new Map<string, number>();
    for (const target of zipfTargets(targets, 1_000, 1)) counts.set(target, (counts.get(target) ?? 0) + 1);
    expect(counts.size).toBeLessThanOrEqual(1_000);
    expect(Math.max(...counts.values())).toBeGreaterThan(100);
  });
});
