/** The shipped alert rules and dashboard, read by Debian's Prometheus, with metrics of a real server. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { METRICS } from '../../src/server/metric-definitions.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { freePort } from '../../tools/free-port.ts';
import { putPem } from '../support/put-pem.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createWorld, put, untilListening, type World } from './world.ts';

const SHIPPED = fileURLToPath(new URL('../../tools/packaging/monitoring/', import.meta.url));
const RULES = `${SHIPPED}alerts.yml`;
const RULE_TESTS = fileURLToPath(new URL('monitoring/alerts.test.yml', import.meta.url));
const promtool = (words: readonly string[], input = ''): string =>
  execFileSync('promtool', words, { encoding: 'utf8', input, stdio: 'pipe' });

interface Rule {
  readonly name: string;
  readonly state: 'inactive' | 'pending' | 'firing';
  readonly health: string;
  readonly lastError?: string;
}

let world: World;
let pagegate: TestServer;
let prometheus: string;
let isStopped = false;

const ENTRIES = [{ domain: 'example.com', page_types: { login: 'https://example.com/login' } }];

/** Requests a resource of the Prometheus API. */
async function api<T>(path: string): Promise<T> {
  const { status, data, error } = (await (await fetch(`${prometheus}/api/v1/${path}`)).json()) as {
    readonly status: string;
    readonly data: T;
    readonly error?: string;
  };
  expect(error, path).toBeUndefined();
  expect(status).toBe('success');
  return data;
}

const allRules = async (): Promise<readonly Rule[]> =>
  (await api<{ readonly groups: readonly { readonly rules: readonly Rule[] }[] }>('rules')).groups.flatMap(
    ({ rules }) => rules,
  );

/** Names of the alerts that are pending or firing. */
const alertsOn = async (): Promise<string[]> =>
  (await allRules()).filter(({ state }) => state !== 'inactive').map(({ name }) => name);

async function check(url: string, key = pagegate.keys['pro']): Promise<number> {
  const path = `/api/check?url=${encodeURIComponent(url)}`;
  const outgoing = request({ port: pagegate.port, path, headers: { 'x-api-key': key }, rejectUnauthorized: false });
  outgoing.end();
  const [response] = await once(outgoing, 'response');
  response.resume();
  return response.statusCode;
}

beforeAll(async () => {
  world = await createWorld();
  const files = { certificate_file: `${world.folder}/cert.pem`, key_file: `${world.folder}/key.pem` };
  // So short that it causes alerts.
  const { certificate, key } = createCertificate('pagegate.test', 0.5);
  putPem(files.certificate_file, certificate);
  putPem(files.key_file, key);
  pagegate = await startTestServer({
    accounts: { pro: { plan: 'pro' }, small: { plan: 'custom', limit: 10 } },
    config: { tls: files, server: { poll_seconds: 1 } },
  });
  const { host } = new URL(pagegate.adminUrl);
  const config = [
    'global: { scrape_interval: 1s, evaluation_interval: 1s }',
    `rule_files: ['${RULES}']`,
    'scrape_configs:',
    `  - { job_name: pagegate, static_configs: [{ targets: ['${host}'] }] }`,
  ];
  const file = put(world, 'prometheus.yml', `${config.join('\n')}\n`);
  promtool(['check', 'config', '--lint-fatal', file]);
  const port = await freePort();
  prometheus = `http://127.0.0.1:${port}`;
  const place = `--web.listen-address=127.0.0.1:${port}`;
  world.start('prometheus', [
    `--config.file=${file}`,
    `--storage.tsdb.path=${world.folder}/tsdb`,
    place,
    '--log.level=error',
  ]);
  await untilListening(port, 60);
});
afterAll(async () => {
  if (!isStopped) await pagegate?.stop();
  await world?.close();
});

test('promtool finds nothing wrong with the rules', () => {
  expect(promtool(['check', 'rules', '--lint-fatal', RULES])).toContain('SUCCESS');
});

test('each rule fires for its reason, and none for a healthy server', () => {
  const names = [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const tested = readFileSync(RULE_TESTS, 'utf8');
  expect(names.filter((name) => !tested.includes(`alertname="${name}"}', value: 1`))).toEqual([]);
  expect(promtool(['test', 'rules', RULE_TESTS])).toContain('SUCCESS');
});

describe('with a live server', () => {
  test('a server without an index causes an alert', async () => {
    expect(await check('https://example.com/')).toBe(503);
    const expected = ['PagegateNotReady', 'PagegateServerErrors', 'PagegateCertificateExpires'];
    await expect
      .poll(alertsOn, { timeout: 60_000 })
      .toEqual(expect.arrayContaining([...expected, 'PagegateCertificateExpired']));
    pagegate.publish(1, ENTRIES);
    await expect.poll(alertsOn, { timeout: 60_000 }).not.toContain('PagegateNotReady');
  });

  test('promtool finds nothing wrong with the metrics', async () => {
    const metrics = await (await fetch(`${pagegate.adminUrl}/metrics`)).text();
    expect(metrics).toContain('pagegate_certificate_expiry_seconds ');
    promtool(['check', 'metrics'], metrics);
  });

  test('every query of the dashboard has a result', async () => {
    const until = Date.now() + 5_000;
    // A rate needs two scrapes, and counts of a few seconds.
    while (Date.now() < until) {
      expect(await check('https://example.com/news')).toBe(200);
      expect(await check('https://example.com/login')).toBe(200);
      expect(await check('https://example.com/', 'pg_wrong')).toBe(401);
      // Uses up its quota, which is then reported.
      await check('https://example.com/', pagegate.keys['small']);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const text = readFileSync(`${SHIPPED}grafana-dashboard.json`, 'utf8');
    const { panels } = JSON.parse(text) as { panels: { targets?: { expr: string }[] }[] };
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(25);
    for (const query of queries) {
      // Only a node of a fleet has these.
      if (query.includes('pagegate_fleet_')) {
        for (const [, name = ''] of query.matchAll(/pagegate_(fleet_\w+)/g)) expect(METRICS).toHaveProperty(name);
        continue;
      }
      const expression = query.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '30s');
      let result: readonly { readonly value: readonly [number, string] }[] = [];
      await expect
        .poll(
          async () => {
            ({ result } = await api<{ result: typeof result }>(`query?query=${encodeURIComponent(expression)}`));
            return result.length;
          },
          { timeout: 60_000, message: expression },
        )
        .toBeGreaterThan(0);
      // On an idle server no request waits, so it has no such quantiles.
      if (!expression.includes('wait_seconds')) expect(Number(result[0]!.value[1]), expression).not.toBeNaN();
    }
  });

  test("every rule can be evaluated on the server's metrics", async () => {
    for (const { name, health, lastError } of await allRules()) {
      expect({ name, health, lastError: lastError ?? '' }).toEqual({ name, health: 'ok', lastError: '' });
    }
  });

  test('a missing server causes an alert', async () => {
    expect(await alertsOn()).not.toContain('PagegateDown');
    await pagegate.stop();
    isStopped = true;
    await expect.poll(alertsOn, { timeout: 60_000 }).toContain('PagegateDown');
  });
});
