/** The contract's section on the license: it governs which data is activated, and never stops lookups on data already held. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, deploy } from './deployment.ts';
import { ask, expectError, sane } from './table.ts';

const DAY_MS = 86_400_000;
const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS);

describe('contract license', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy({ licensedUntil: daysAgo(5), dropCreated: daysAgo(10) });
  });
  afterAll(() => deployment.stop());

  const dataTag = async (): Promise<string | undefined> =>
    (await ask(deployment.port, { query: 'url=stripe.com', key: deployment.keys.pro })).headers['x-pagegate-data'];

  it('an expired entitlement never stops lookups on data already held', async () => {
    expect(await sane(deployment.port, deployment.keys.pro)).toBe(89_999);
    await deployment.restart();
    expect(await sane(deployment.port, deployment.keys.pro)).toBe(89_998);
  });

  it('data outside the entitlement is not activated, with a clear error, and what was served goes on being served', async () => {
    const before = await dataTag();
    deployment.deliver(2, new Date());
    expect(() => deployment.refresh()).toThrow(/licen[s]e|entitle/i);
    expect(await dataTag()).toBe(before);
    await deployment.restart();
    expect(await dataTag()).toBe(before);
  });

  it('contract response: x-pagegate-data changes with the data', async () => {
    const before = await dataTag();
    deployment.deliver(2, daysAgo(6));
    deployment.refresh();
    await expect.poll(dataTag).not.toBe(before);
    expect(before).toMatch(/^1\./);
    expect(await dataTag()).toBe(before?.replace(/^1/, '2'));
  });

  it('an index that no license covers is not activated: 503, and the log says why', async () => {
    deployment.removeLicense();
    await deployment.restart();
    const response = await ask(deployment.port, { query: 'url=stripe.com', key: deployment.keys.pro });
    expectError(response, 503, 'no_index');
    await expect.poll(() => deployment.log()).toMatch(/license_missing/);
  });
});
