/** Spec 7, status 503, and its position in the order of the checks: no index yet, and an unavailable ledger. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RawResponse } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { ask, expectError, remainingIn, sane } from './table.ts';

function expect503(response: RawResponse, error: string): void {
  expectError(response, 503, error);
  expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1);
}

describe('outages', () => {
  let deployment: Deployment;
  let waiting = '';
  let spent = '';

  beforeAll(async () => {
    deployment = await deploy({ withIndex: false });
    waiting = await deployment.createAccount('waiting');
    spent = await deployment.createAccount('spent');
    await deployment.subscribe('spent', 'custom', 1);
  });
  afterAll(() => deployment.stop());

  const look = (key: string, query = 'url=stripe.com') => ask(deployment.port, { query, key });

  it('spec 7: 503, no index is served yet, with Retry-After (contract errors: Retry-After)', async () => {
    for (let i = 0; i < 3; i += 1) expect503(await look(deployment.keys.pro), 'no_index');
  });

  it.each([
    ['401 before 503', () => look(deployment.keys.stranger), 401, 'unknown_key'],
    ['403 not activated before 503', () => look(waiting), 403, 'not_activated'],
    ['400 before 503', () => look(deployment.keys.pro, 'url=localhost'), 400, 'bad_input'],
  ] as const)('contract request, the order of the checks: %s', async (_name, request, status, error) => {
    expectError(await request(), status, error);
  });

  it('a new index is served without a restart, and no 503 was charged', async () => {
    deployment.refresh();
    expect(await sane(deployment.port, deployment.keys.pro)).toBe(89_999);
    expect(await sane(deployment.port, spent)).toBe(0);
    expectError(await look(spent), 403, 'quota_exhausted');
  });

  it('contract request, the order of the checks: 503 before 403 quota', async () => {
    const link = join(deployment.stateDir, 'index/current');
    renameSync(link, `${link}.away`);
    await deployment.restart();
    expect503(await look(spent), 'no_index');
    renameSync(`${link}.away`, link);
    await deployment.restart();
    expectError(await look(spent), 403, 'quota_exhausted');
  });

  it('contract request, the order of the checks: a ledger that cannot be asked is 503; nothing is lost or charged twice', async () => {
    const { keys, stateDir } = deployment;
    const before = await sane(deployment.port, keys.pro);
    const other = new Sqlite(join(stateDir, 'ledger/ledger.sqlite'));
    let answered = 0;
    other.exec('BEGIN IMMEDIATE');
    try {
      // Reserved lookups can still be spent.
      let refused = await look(keys.pro);
      for (; refused.status === 200; refused = await look(keys.pro)) answered += 1;
      expect503(refused, 'ledger_unavailable');
      expect(answered).toBeGreaterThan(0);
      expect(answered).toBeLessThanOrEqual(900);
    } finally {
      other.exec('ROLLBACK');
      other.close();
    }
    // A client retries; the ledger may need a moment to notice that it works again.
    let response = await look(keys.pro);
    await expect
      .poll(async () => {
        if (response.status === 503) response = await look(keys.pro);
        return response.status;
      })
      .toBe(200);
    expect(remainingIn(response)).toBe(before - answered - 1);
  });
});
