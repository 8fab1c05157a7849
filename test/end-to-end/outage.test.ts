/** Spec 7, status 503, and its place in the order of the checks: no index yet, and a ledger that cannot be asked. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, deploy } from './deployment.ts';
import type { RawResponse } from './raw-http.ts';
import { ask, expectError, remainingIn, sane } from './table.ts';

function expect503(response: RawResponse, error: string): void {
  expectError(response, 503, error);
  expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1);
}

describe('spec 7: 503, no index is served yet', () => {
  let deployment: Deployment;
  let port = 0;
  let waiting = '';
  let spent = '';

  beforeAll(async () => {
    deployment = await deploy({ withIndex: false });
    port = deployment.port;
    waiting = deployment.createAccount('waiting');
    spent = deployment.createAccount('spent');
    deployment.subscribe('spent', 'custom', 1);
  });
  afterAll(() => deployment.stop());

  it('503 with Retry-After (contract errors: Retry-After)', async () => {
    for (let i = 0; i < 3; i += 1) {
      expect503(await ask(port, { query: 'url=stripe.com', key: deployment.keys.pro }), 'no_index');
    }
  });

  it.each([
    ['401 before 503', () => ask(port, { query: 'url=stripe.com', key: deployment.keys.stranger }), 401, 'unknown_key'],
    ['403 not activated before 503', () => ask(port, { query: 'url=stripe.com', key: waiting }), 403, 'not_activated'],
    ['400 before 503', () => ask(port, { query: 'url=localhost', key: deployment.keys.pro }), 400, 'bad_input'],
  ] as const)('contract request, the order of the checks: %s', async (_name, request, status, error) => {
    expectError(await request(), status, error);
  });

  it('when an index is there it is served without a restart, and no 503 was charged', async () => {
    deployment.refresh();
    expect(await sane(port, deployment.keys.pro)).toBe(89_999);
    expect(await sane(port, spent)).toBe(0);
    expectError(await ask(port, { query: 'url=stripe.com', key: spent }), 403, 'quota_exhausted');
  });
});

describe('contract request, the order of the checks: 503 before 403 quota', () => {
  it('an exhausted account gets 503 while there is no index, and is still exhausted when there is one', async () => {
    const deployment = await deploy();
    try {
      const key = deployment.createAccount('spent');
      deployment.subscribe('spent', 'custom', 1);
      expect(await sane(deployment.port, key)).toBe(0);
      const link = join(deployment.stateDir, 'index/current');
      renameSync(link, `${link}.away`);
      await deployment.restart();
      expect503(await ask(deployment.port, { query: 'url=stripe.com', key }), 'no_index');
      renameSync(`${link}.away`, link);
      await deployment.restart();
      expectError(await ask(deployment.port, { query: 'url=stripe.com', key }), 403, 'quota_exhausted');
    } finally {
      await deployment.stop();
    }
  });
});

describe('contract request, the order of the checks: a ledger that cannot be asked is 503, never 401', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
  });
  afterAll(() => deployment.stop());

  it('503 while another process holds the ledger; afterwards nothing is lost and nothing charged twice', async () => {
    const { port, keys, stateDir } = deployment;
    const before = await sane(port, keys.pro);
    const other = new Sqlite(join(stateDir, 'ledger/ledger.sqlite'));
    other.exec('BEGIN IMMEDIATE');
    try {
      expect503(await ask(port, { query: 'url=stripe.com', key: keys.pro }), 'ledger_unavailable');
    } finally {
      other.exec('ROLLBACK');
      other.close();
    }
    // A client retries; the ledger may need a moment to see that it can go on.
    let response = await ask(port, { query: 'url=stripe.com', key: keys.pro });
    for (let tries = 0; response.status === 503 && tries < 100; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      response = await ask(port, { query: 'url=stripe.com', key: keys.pro });
    }
    expect([response.status, remainingIn(response)]).toEqual([200, before - 1]);
  });
});
