/** Spec 4, transport; the contract's section on it; and what an installation must never log. */
import { chmodSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pagegate } from '../support/program.ts';
import { exchange, nextClient, requestText } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { ask, expectAnswer, expectError, found, sane } from './table.ts';

describe('spec 4: transport is HTTPS', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy({ withTls: true });
  });
  afterAll(() => deployment.stop());

  it('spec 4 transport: a lookup over TLS', async () => {
    const body = await new Promise<string>((resolve, reject) => {
      const target = `https://127.0.0.1:${deployment.port}/api/check?url=https://stripe.com/login`;
      const options = {
        headers: { 'X-API-Key': deployment.keys.pro },
        rejectUnauthorized: false,
        agent: false,
      } as const;
      get(target, options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      }).on('error', reject);
    });
    expect(body).toMatch(/^200 \{"domain":"stripe.com","found":true,.*"verdict":"deny"/);
  });

  it('contract transport: TLS in the server itself: it does not answer plain HTTP', async () => {
    const { responses } = await exchange(
      deployment.port,
      [requestText('/api/check?url=stripe.com', [['X-API-Key', deployment.keys.pro]])],
      { from: nextClient(), untilClose: true },
    );
    expect(responses.filter((response) => response.status < 400)).toEqual([]);
  });
});

describe('contract transport', () => {
  let deployment: Deployment;
  let port = 0;
  beforeAll(async () => {
    deployment = await deploy({ config: { decision_log: { enabled: true, full_url: true } } });
    port = deployment.port;
  });
  afterAll(() => deployment.stop());

  it.each([['0.0.0.0'], ['::']])('plain HTTP only on loopback: %s is refused', (host) => {
    const args = ['serve', '--config', join(deployment.stateDir, '../pagegate.json'), '--host', host];
    const { status, stderr } = pagegate(args, { timeout: 120_000 });
    expect(status).toBeGreaterThan(0);
    expect(stderr).toMatch(/TLS|loopback/);
  });

  it('health and metrics are on a second listener, for reads only', async () => {
    await expect.poll(() => deployment.log()).toMatch(/Health[^\n]*:\d+\n/);
    const admin = Number(/Health[^\n]*:(\d+)/.exec(deployment.log())?.[1]);
    expect(admin).not.toBe(port);
    const { responses } = await exchange(admin, [requestText('/metrics', [], 'POST')]);
    expect(responses[0]?.status).toBe(405);
    const { responses: lookups } = await exchange(admin, [
      requestText('/api/check?url=stripe.com', [['X-API-Key', deployment.keys.pro]]),
    ]);
    expect(lookups[0]?.status).toBe(404);
  });

  it('commands use a Unix socket that only owner and group may access', () => {
    expect(statSync(join(deployment.stateDir, 'run/pagegate.sock')).mode & 0o777).toBe(0o660);
  });

  it('index files have mode 0444', () => {
    const file = realpathSync(join(deployment.stateDir, 'index/current/index.pgx'));
    expect(statSync(file).mode & 0o777).toBe(0o444);
  });

  it('an index file writable by group or others is refused, and the server answers 503', async () => {
    const file = realpathSync(join(deployment.stateDir, 'index/current/index.pgx'));
    chmodSync(file, 0o464);
    await deployment.restart();
    port = deployment.port;
    const response = await ask(port, { query: 'url=stripe.com', key: deployment.keys.pro });
    expectError(response, 503, 'no_index');
    chmodSync(file, 0o444);
    await deployment.restart();
    port = deployment.port;
    expectAnswer(
      await ask(port, { query: 'url=stripe.com', key: deployment.keys.pro }),
      found('stripe.com', 'allow default/classified_read'),
    );
  });

  it('no log contains a request target, a key or a protected value, whatever the response', async () => {
    const { keys } = deployment;
    const secret = 'swordfish-in-a-value';
    const queries = [
      `url=https://stripe.com/%3Ftoken=${secret}`,
      `url=localhost%3F${secret}`,
      `foo=${secret}`,
      `url=%zz${secret}`,
    ];
    for (const key of [keys.pro, keys.stranger]) {
      for (const query of queries) await ask(port, { query, key, keyIn: 'query' });
    }
    await exchange(port, [requestText(`/${secret}?api_key=${keys.pro}`)], { from: nextClient() });
    await sane(port, keys.pro);
    const decisions = join(deployment.stateDir, 'log');
    const written = [
      deployment.log(),
      ...readdirSync(decisions).map((name) => readFileSync(join(decisions, name), 'utf8')),
    ].join('\n');
    for (const key of [keys.pro, keys.stranger]) expect(written).not.toContain(key);
    expect(deployment.log()).not.toContain(secret);
    expect(written).not.toContain('api_key=');
  });
});
