/** The limits: each is used, and the data files agree. */
import { describe, expect, it } from 'vitest';
import { settings } from '../../src/config/schema.ts';
import { SLOT_COUNT } from '../../src/ledger/counters/counters.ts';
import { LIMIT_TOPICS, LIMITS } from '../../src/limits.ts';
import { sourcesUnder, textOf } from './tree.ts';

describe('limits', () => {
  it('are listed under one topic each', () => {
    const listed = Object.values(LIMIT_TOPICS).flatMap((limits) => Object.keys(limits));
    expect([...listed].sort()).toEqual(Object.keys(LIMITS).sort());
  });

  it('state in sentences what is limited and why', () => {
    const poor = Object.entries(LIMITS).filter(
      ([, { what, reason }]) => !/^[A-Z`]\S*(?: .+)?[^.]$/.test(what) || !/^[A-Z].{10,}\.$/.test(reason),
    );
    expect(poor).toEqual([]);
  });

  it('are used by the code', () => {
    const code = sourcesUnder('src').map(textOf).join('\n');
    expect(Object.keys(LIMITS).filter((name) => !code.includes(`LIMITS.${name}.value`))).toEqual([]);
  });

  it('agree with the configuration, the counters and the policy', () => {
    const workers = settings.find(({ name }) => name === 'server.workers')?.schema.anyOf?.[0] as { maximum?: number };
    expect(workers.maximum).toBe(LIMITS.workers.value);
    expect(SLOT_COUNT - 1).toBe(LIMITS.accounts.value);
  });
});
