/** The shipped unit, with all its restrictions, under a real systemd: restarts, upgrades, failures and crashes. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DISTRIBUTION_FAULTS, Distributions } from '../../tools/chaos/distributions.ts';
import { SteadyClients } from '../../tools/chaos/steady-clients.ts';
import { freePort } from '../../tools/free-port.ts';
import { Container } from './container.ts';

let container: Container;
let versions: Distributions;
let port: number;
let adminPort: number;
let key: string;

const used = async (): Promise<number> =>
  Number((await container.pagegate('account', 'show', 'gateway'))['quota_used']);
const status = async (): Promise<number> =>
  (await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => ({ status: 0 }))).status;

beforeAll(async () => {
  [port, adminPort] = [await freePort(), await freePort()];
  container = await Container.boot({ port, adminPort });
  versions = new Distributions(join(container.place.root, 'opt'), true);
  for (const version of ['0.1.0', '0.2.0']) await versions.make(version);
  versions.use('0.1.0');
  await container.pagegate('account', 'create', 'gateway');
  const subscribed = await container.pagegate(
    'account',
    'subscribe',
    'gateway',
    '--plan',
    'custom',
    '--limit',
    '1000000000',
    '--reference',
    'PAY',
  );
  key = String(subscribed['key']);
  expect(await container.run('systemctl', 'start', 'pagegate')).toMatchObject({ code: 0 });
});
afterAll(() => container?.stop());

/** Runs a task under load. Every answer must be received and charged once. */
async function underLoad(task: () => Promise<void>): Promise<void> {
  const before = await used();
  const clients = new SteadyClients({ port, key, isTls: false, kept: 8, slow: 6, fresh: 6 });
  clients.start();
  try {
    await task();
  } finally {
    await clients.stop();
  }
  expect([...clients.failures]).toEqual([]);
  expect(clients.read).toBeGreaterThan(20);
  expect((await used()) - before).toBe(clients.read);
}

describe('pagegate.service', () => {
  it('is reported as started once it answers', async () => {
    expect(await container.show('ActiveState')).toBe('active');
    expect(await container.show('StatusText')).toMatch(/^pagegate 0\.1\.0 answers on /);
    expect(await status()).toBe(200);
  });

  it('is reloaded by another process, which systemd then treats as the main one', async () => {
    await underLoad(async () => {
      for (let i = 0; i < 3; i += 1) {
        const before = await container.show('MainPID');
        expect(await container.run('systemctl', 'reload-or-restart', 'pagegate')).toMatchObject({ code: 0 });
        expect(await container.show('MainPID')).not.toBe(before);
      }
    });
    expect(await container.show('NRestarts')).toBe('0');
  });

  it('is upgraded and downgraded by switching a link and reloading', async () => {
    for (const version of ['0.2.0', '0.1.0']) {
      await underLoad(async () => {
        versions.use(version);
        expect(await container.run('systemctl', 'reload', 'pagegate')).toMatchObject({ code: 0 });
        expect(await container.show('StatusText')).toContain(`pagegate ${version} answers`);
      });
    }
  });

  it('continues if a reload fails, and the reload reports it', async () => {
    const before = await container.show('MainPID');
    await versions.make('0.3.0', DISTRIBUTION_FAULTS['ends at once']);
    await underLoad(async () => {
      versions.use('0.3.0');
      expect((await container.run('systemctl', 'reload', 'pagegate')).code).not.toBe(0);
      versions.use('0.1.0');
    });
    expect(await container.show('MainPID')).toBe(before);
    expect(await status()).toBe(200);
  });

  it('is restarted after the death of the process that a reload started', async () => {
    const before = await container.show('MainPID');
    await container.run('/bin/sh', '-c', `kill -9 ${before}`);
    await expect.poll(() => container.show('NRestarts')).toBe('1');
    await expect.poll(() => container.show('ActiveState')).toBe('active');
    expect(await container.show('MainPID')).not.toBe(before);
    await expect.poll(status).toBe(200);
    await underLoad(async () => {
      await container.run('systemctl', 'reload', 'pagegate');
    });
  });

  it('is notified of a new drop by the refresh unit, and backed up by the backup unit', async () => {
    await container.run('/bin/sh', '-c', 'mkdir /srv/pagegate && cp -r /etc/pagegate/drop /srv/pagegate/');
    await container.run('install', '-d', '-m', '0700', '-o', 'pagegate', '-g', 'pagegate', '/var/backups/pagegate');
    for (const unit of ['pagegate-refresh', 'pagegate-backup']) {
      const started = await container.run('systemctl', 'start', `${unit}.service`);
      const { stdout } = await container.run('journalctl', '--unit', unit, '--output', 'cat');
      expect(started, stdout).toMatchObject({ code: 0 });
      expect(stdout).not.toMatch(/Warning|\[\w+\]$/m);
    }
    expect(await container.pagegate('status')).toMatchObject({ workers: [{ records: 12 }, { records: 12 }] });
    const audit = (await container.pagegate('account', 'audit')) as unknown as readonly object[];
    expect(audit).toContainEqual(expect.objectContaining({ actor: 'pagegate', action: 'generation.refresh' }));
    const { stdout: copies } = await container.run('ls', '/var/backups/pagegate');
    expect(copies).toMatch(/^ledger-\d{8}T\d{6}Z\.sqlite\n$/);
  });

  it('counts exactly the charged lookups when all of its processes die at once', async () => {
    const before = await used();
    const url = `http://127.0.0.1:${port}/api/check?url=example.com`;
    for (let i = 0; i < 5; i += 1) expect((await fetch(url, { headers: { 'x-api-key': key } })).status).toBe(200);
    const restarts = Number(await container.show('NRestarts'));
    await container.run('systemctl', 'kill', '--signal=SIGKILL', 'pagegate');
    await expect.poll(() => container.show('NRestarts')).toBe(String(restarts + 1));
    await expect.poll(status).toBe(200);
    expect((await used()) - before).toBe(5);
  });

  it('stops successfully after a reload, and first answers open requests', async () => {
    expect(await container.run('systemctl', 'reload', 'pagegate')).toMatchObject({ code: 0 });
    expect(await container.run('systemctl', 'stop', 'pagegate')).toMatchObject({ code: 0 });
    expect(await container.show('Result')).toBe('success');
    expect(await container.show('ActiveState')).toBe('inactive');
    expect((await container.run('journalctl', '--unit', 'pagegate', '--output', 'cat')).stdout).toMatch(
      /"stopped"}\s*(?:pagegate\.service: [^\n]*\n|Stopped [^\n]*\n)*$/,
    );
  });
});
