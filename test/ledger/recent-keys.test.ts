import { describe, expect, it } from 'vitest';
import { createApiKey } from '../../src/ledger/api-key.ts';
import { RecentKeys } from '../../src/ledger/recent-keys.ts';

describe('recent keys', () => {
  it('gives back what a key led to, and nothing for any other key', () => {
    const recent = new RecentKeys<number>();
    const keys = Array.from({ length: 3_000 }, createApiKey);
    let kept = 0;
    for (const [i, key] of keys.entries()) {
      recent.remember(key, i);
      expect(recent.find(key)).toBe(i);
      const others = [
        key.slice(1),
        `${key}0`,
        '',
        key.toLowerCase(),
        `${key.slice(0, -1)}!`,
        `${key.slice(0, -1)}\u0100`,
      ];
      for (const other of others) if (other !== key) expect(recent.find(other)).toBeUndefined();
    }
    for (const [i, key] of keys.entries()) {
      const found = recent.find(key);
      expect([i, undefined]).toContain(found);
      if (found !== undefined) kept++;
    }
    expect(kept).toBeGreaterThan(500);
    expect(kept).toBeLessThanOrEqual(1_024);
  });

  it('forgets', () => {
    const recent = new RecentKeys<number>();
    const key = createApiKey();
    recent.remember(key, 1);
    recent.clear();
    expect(recent.find(key)).toBeUndefined();
    expect(recent.find('')).toBeUndefined();
  });
});
