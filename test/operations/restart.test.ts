/** `pagegate restart` as an operator and systemd see it: one server of the real program, replaced again and again. */
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askServer } from '../../src/server/control-socket.ts';
import type { Readiness, ServerStatus } from '../../src/server/status.ts';
import { DISTRIBUTION_FAULTS, Distributions } from '../../tools/chaos/distributions.ts';
import { ServerProcess } from '../../tools/chaos/server-process.ts';
import { freePort } from '../../tools/free-port.ts';
import { activate, createInstallation, type Installation } from '../../tools/installation.ts';
import { DatagramSocket } from '../support/datagrams.ts';
import { isAlive } from '../support/processes.ts';

const TIMEOUT_MS = 300_000;

let place: Installation;
let versions: Distributions;
let systemd: DatagramSocket;
let adminPort: number;
let first: ServerProcess;
let pids: number[];
let messages: string[] = [];

/** Returns the notifications to systemd so far. */
function received(): string[] {
  messages.push(...systemd.take());
  return messages;
}

const status = (): Promise<ServerStatus> =>
  askServer(join(place.state, 'run/pagegate.sock'), 'status') as Promise<ServerStatus>;
const configure = (change: object): void => {
  const config = JSON.parse(readFileSync(place.configFile, 'utf8'));
  writeFileSync(place.configFile, JSON.stringify({ ...config, ...change }));
};

beforeAll(async () => {
  const [port, admin] = [await freePort(), await freePort()];
  adminPort = admin;
  place = createInstallation({ config: { server: { port }, admin: { port: adminPort } } });
  await activate(place, { revision: 1, domains: 2 });
  versions = new Distributions(place.root, false);
  await versions.make('1.0.0');
  versions.use('1.0.0');
  const path = join(place.root, 'notify');
  systemd = new DatagramSocket(path);
  process.env['NOTIFY_SOCKET'] = path;
  first = new ServerProcess(place.configFile, {}, [], versions.program);
  await first.listening();
  delete process.env['NOTIFY_SOCKET'];
  pids = [first.pid];
}, TIMEOUT_MS);

afterAll(async () => {
  for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
  await first.ended();
  systemd.close();
  place.remove();
}, TIMEOUT_MS);

describe('pagegate restart', { timeout: TIMEOUT_MS }, () => {
  it('starts another process with the same admin listener, and tells systemd which one', async () => {
    await expect.poll(received).toEqual([expect.stringMatching(/^READY=1\nSTATUS=pagegate 1\.0\.0 answers on http:/)]);
    messages = [];
    // The first server accepts both: an idle one keeps its workers for a while, the other one sends its request late.
    const { address } = await status();
    const idle = new Agent({ keepAlive: true });
    const [answer] = await once(get(`${address}/api/check`, { agent: idle }), 'response');
    answer.resume();
    const late = connect(adminPort, '127.0.0.1');
    await once(late, 'connect');
    let isOver = false;
    const said: unknown[] = [];
    const looking = (async () => {
      while (!isOver) {
        const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`, { headers: { connection: 'close' } });
        said.push(await answer.json());
      }
    })();
    const { code, json } = await place.pagegate('restart');
    expect(code).toBe(0);
    const { pid } = await status();
    await expect.poll(() => first.log).toContain('"stopping"');
    late.write('GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n');
    expect(String((await once(late, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    idle.destroy();
    pids.push(pid);
    expect(json).toEqual({ version: '1.0.0', pid });
    expect(pid).not.toBe(first.pid);
    await expect.poll(() => isAlive(first.pid)).toBe(false);
    isOver = true;
    await looking;
    expect(said.length).toBeGreaterThan(0);
    expect(said.filter((state) => !(state as Readiness).ready)).toEqual([]);
    await expect.poll(() => first.log).toContain('"taken_over"');
    await expect.poll(received).toEqual([`MAINPID=${pid}`, expect.stringMatching(/^READY=1\n/)]);
  });

  it('takes over changed settings and another version', async () => {
    await versions.make('1.1.0');
    versions.use('1.1.0');
    configure({ burst: { limit: 1, exempt: [] } });
    const { code, json } = await place.pagegate('restart');
    expect({ code, ...json }).toMatchObject({ code: 0, version: '1.1.0' });
    const { pid, version, address } = await status();
    pids.push(pid);
    expect(version).toBe('1.1.0');
    const codes = await Promise.all([1, 2].map(() => fetch(`${address}/api/check`).then((answer) => answer.status)));
    expect(codes.sort()).toEqual([401, 429]);
  });

  it('leaves the running server alone if the next one fails, and has its own exit code', async () => {
    const { pid } = await status();
    await versions.make('1.2.0', DISTRIBUTION_FAULTS['is not a program']);
    versions.use('1.2.0');
    expect(await place.pagegate('restart')).toMatchObject({ code: 9, json: { error: 'restart_failed' } });
    versions.use('1.1.0');
    configure({ server: { port: 'none' } });
    expect(await place.pagegate('restart')).toMatchObject({ code: 3, json: { error: 'config_invalid' } });
    expect(await status()).toMatchObject({ pid, ready: true });
  });

  it('refuses a change that needs a stop and a start, and says why', async () => {
    const { pid, address } = await status();
    configure({ server: { port: Number(new URL(address).port) }, burst: {} });
    await versions.make('1.3.0', DISTRIBUTION_FAULTS['has another ledger version']);
    versions.use('1.3.0');
    const { code, json, stderr } = await place.pagegate('restart');
    expect({ code, ...json }).toMatchObject({ code: 6, error: 'restart_needs_stop' });
    expect(stderr).toMatch(
      /pagegate 1\.3\.0 writes version \d+ of the ledger.* copies the ledger to .*\.version-\d+ before/s,
    );
    versions.use('1.1.0');
    expect(await status()).toMatchObject({ pid, ready: true });
  });

  it('refuses a second one at the same time, and a stop during one ends both', async () => {
    const { pid } = await status();
    await versions.make('1.4.0', DISTRIBUTION_FAULTS['hangs at once']);
    versions.use('1.4.0');
    const restarting = place.pagegate('restart');
    await expect.poll(() => first.log.match(/"restarting"/g)?.length).toBeGreaterThan(4);
    expect(await place.pagegate('restart')).toMatchObject({ code: 8, json: { error: 'restart_busy' } });
    process.kill(pid, 'SIGTERM');
    const { code, json, stderr } = await restarting;
    expect({ code, ...json }).toMatchObject({ code: 4, error: 'restart_stopped' });
    expect(stderr).not.toContain('continues');
    expect(first.log.slice(first.log.lastIndexOf('"restarting"'))).not.toContain('"restart_failed"');
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(received().at(-1)).toBe('STOPPING=1');
    rmSync(join(place.root, 'pagegate'));
  });
});
