import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { askServer } from '../../src/server/control-socket.ts';
import { freePort } from '../../tools/free-port.ts';
import { removeCountersOf } from '../../tools/remove-counters.ts';
import { isAlive } from '../support/processes.ts';
import { CLI, pagegate } from '../support/program.ts';
import { type Installed, install, read } from '../support/server.ts';

const SECRET_URL = 'https://example.com/secret-path?token=SECRET';

let dir: string;
let installation: Installed;
let configFile: string;
let server: ChildProcess | undefined;
let output = '';

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-serve-'));
  installation = await install(dir, {
    entries: [{ domain: 'example.com' }],
    config: { server: { poll_seconds: 3600 } },
  });
  configFile = join(dir, 'pagegate.json');
  writeFileSync(
    configFile,
    JSON.stringify({ ...installation.config, server: { ...installation.config.server, workers: 2 } }),
  );
});
afterEach(async () => {
  if (server !== undefined && server.exitCode === null && server.signalCode === null) {
    server.kill('SIGKILL');
    await once(server, 'exit');
  }
});
afterAll(() => {
  removeCountersOf(installation.config.state_dir);
  rmSync(dir, { recursive: true, force: true });
});

async function serve(...flags: string[]): Promise<string> {
  output = '';
  const child = spawn(process.execPath, [CLI, 'serve', '--config', configFile, ...flags]);
  server = child;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  await expect.poll(() => output).toMatch(/pagegate serves \S+ /);
  return /pagegate serves (\S+) /.exec(output)![1]!;
}

const run = (...words: string[]) => pagegate([...words, '--config', configFile]);
/** Like `run`, but without blocking this process. */
const runMeanwhile = (...args: string[]) =>
  new Promise<{ readonly status: unknown; readonly stdout: string }>((resolve) => {
    execFile(process.execPath, [CLI, ...args, '--config', configFile], (error, stdout) =>
      resolve({ status: error?.code ?? 0, stdout }),
    );
  });
/** Resolves with exit code and signal, once all output of the process and its children has been read. */
const end = (child: ChildProcess): Promise<unknown[]> => once(child, 'close');
const ask = async (url: string, value = SECRET_URL) =>
  read(
    await fetch(`${url}?url=${encodeURIComponent(value)}`, {
      headers: { 'x-api-key': installation.keys['pro']!, connection: 'close' },
    }),
  );
interface WorkerState {
  readonly pid: number;
  readonly in_flight: number;
  readonly draining: boolean;
}
const workerStates = async (): Promise<readonly WorkerState[]> => {
  const status = (await askServer(installation.paths.socket, 'status')) as { workers: WorkerState[] };
  return status.workers;
};
const workerPids = async (): Promise<number[]> => (await workerStates()).map(({ pid }) => pid);
const waitingRequests = async (): Promise<number> =>
  (await workerStates()).reduce((sum, { in_flight }) => sum + in_flight, 0);
const drainingWorkers = async (): Promise<number> => (await workerStates()).filter(({ draining }) => draining).length;

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8');
const childPids = (): number[] =>
  readFileSync(`/proc/${server!.pid}/task/${server!.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
const writerPid = (): number => childPids().find((pid) => commandOf(pid).includes('writer/main'))!;

describe('pagegate serve', () => {
  it('answers, accepts commands over its socket, and ends with exit code 0; its log contains nothing about requests', async () => {
    const url = await serve();
    expect((await ask(url)).body.domain).toBe('example.com');
    expect((await read(await fetch(`${url}?url=x&api_key=pg_SECRETKEY`))).status).toBe(401);

    const status = run('status');
    expect([status.status, status.stdout]).toEqual([0, expect.stringMatching(/ready .*\n[\s\S]*1\.[0-9a-f]{12}/)]);
    const second = run('serve', '--port', '0', '--admin-port', '0');
    expect([second.status, second.stderr]).toEqual([8, expect.stringContaining('[server_running]')]);

    installation.publish(2, [{ domain: 'example.com' }, { domain: 'plain.org' }]);
    const reload = run('reload');
    expect([reload.status, reload.stdout.match(/generation 2/g)?.length]).toEqual([0, 2]);
    expect((await ask(url, 'plain.org')).body.found).toBe(true);
    installation.publish(3, [{ domain: 'plain.org' }], { dataset: 'other' });
    const refused = run('reload');
    expect([refused.status, refused.stdout.match(/refused/g)?.length]).toEqual([6, 2]);
    expect(refused.stderr).toMatch(/^(?:Warning: .+\n)+$/);
    // The table shows only the result; the warnings have the reason.
    expect(refused.stdout).toMatch(/^ +\d {2}refused {2,}unchanged/m);
    installation.publish(4, [{ domain: 'plain.org' }]);
    server!.kill('SIGHUP');
    await expect.poll(async () => (await ask(url)).body.found).toBe(false);

    const ended = end(server!);
    expect(run('drain').status).toBe(0);
    expect(await ended).toEqual([0, null]);
    expect(run('status').status).toBe(4);
    expect(output).not.toMatch(/SECRET|secret-path|example\.com|plain\.org|pg_|api\/check\?/);
    for (const line of output.split('\n').filter((text) => text.startsWith('{')))
      expect(JSON.parse(line)).toHaveProperty('event');
    expect(readdirSync(installation.paths.runDir).filter((name) => name.startsWith('burst-'))).toEqual([]);
  });

  it('reloads on SIGHUP, even during the start, and ends no process', async () => {
    const starting = serve();
    await expect.poll(() => output).toContain('"ledger_ready"');
    server!.kill('SIGHUP');
    await starting;
    const pids = childPids();
    for (const pid of pids) process.kill(pid, 'SIGHUP');
    expect(run('reload').status).toBe(0);
    expect(childPids()).toEqual(pids);
  });

  it('takes Ctrl-C during the start, which also ends its new processes, as a stop and not as a failure', async () => {
    output = '';
    server = spawn(process.execPath, [CLI, 'serve', '--config', configFile], { detached: true });
    for (const stream of [server.stdout!, server.stderr!]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    const isBegun = () => childPids().some((pid) => commandOf(pid).includes('worker-process'));
    await expect.poll(isBegun, { interval: 5, timeout: 20_000 }).toBe(true);
    const ended = end(server);
    process.kill(-server.pid!, 'SIGINT');
    expect(await ended).toEqual([0, null]);
    expect(output).not.toContain('pagegate: ');
  });

  it('reports through its commands that the ledger writer hangs and the workers cannot follow', async () => {
    await serve();
    const writer = writerPid();
    process.kill(writer, 'SIGSTOP');
    // Otherwise it would replace a ledger writer that hangs.
    server!.kill('SIGSTOP');
    const suspended = run('account', 'suspend', 'pro');
    for (const pid of [writer, server!.pid!]) process.kill(pid, 'SIGCONT');
    expect([suspended.status, suspended.stderr]).toEqual([0, expect.stringMatching(/^Warning: .*: this host\./)]);
    const active = run('account', 'reactivate', 'pro');
    expect([active.status, active.stderr]).toEqual([0, '']);
  });

  it.each([
    ['is closed', 'pipe'],
    ['is full', openSync('/dev/full', 'w')],
  ] as const)('serves, even with a console, if its standard output %s', async (_how, stdout) => {
    const withConsole = join(dir, 'console.json');
    const console = { ...installation.config.console, enabled: true, port: await freePort() };
    writeFileSync(withConsole, JSON.stringify({ ...installation.config, console }));
    const child = spawn(process.execPath, [CLI, 'serve', '--config', withConsole], {
      stdio: ['ignore', stdout, 'pipe'],
    });
    server = child;
    child.stdout?.destroy();
    output = '';
    child.stderr!.on('data', (chunk) => {
      output += chunk;
    });
    await expect.poll(() => output).toContain('"console_listening"');
    const [, address] = /"event":"listening","address":"([^"]+)"/.exec(output)!;
    expect((await ask(`${address}/api/check`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('ends gracefully on SIGTERM', async () => {
    const url = await serve();
    const pids = await workerPids();
    expect((await ask(url)).status).toBe(200);
    server!.kill('SIGTERM');
    expect(await end(server!)).toEqual([0, null]);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('waits at its start until an earlier server that stops has ended', async () => {
    await serve();
    const earlier = server!;
    const ended = end(earlier);
    earlier.kill('SIGTERM');
    const url = await serve();
    expect((await ask(url)).status).toBe(200);
    expect(await ended).toEqual([0, null]);
    expect(run('status').status).toBe(0);
  });

  it('ends in time on SIGTERM while the ledger hangs, and logs which process it killed', async () => {
    const url = await serve();
    expect((await ask(url)).status).toBe(200);
    const pids = childPids();
    process.kill(writerPid(), 'SIGSTOP');
    server!.kill('SIGTERM');
    expect(await end(server!)).toEqual([0, null]);
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    expect(output).toMatch(/"ledger_writer_killed".*did not end in time/);
  });

  it('ends at once on a second SIGTERM, with all its processes, even those that hang', async () => {
    await serve();
    const pids = childPids();
    expect(pids.length).toBe(3);
    process.kill(writerPid(), 'SIGSTOP');
    process.kill((await workerPids())[0]!, 'SIGSTOP');
    server!.kill('SIGTERM');
    await expect.poll(() => output).toContain('"stopping"');
    // A wrapper would send the same signal again earlier than this.
    await sleep(1_000);
    server!.kill('SIGTERM');
    expect(await end(server!)).toEqual([130, null]);
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  it('names a worker that hangs in health, status and reload, then kills and replaces it', async () => {
    await serve();
    await expect.poll(() => output).toMatch(/Health, metrics, status: \S+\n/);
    const admin = /Health, metrics, status: (\S+)/.exec(output)![1]!;
    let pids = await workerPids();
    const stopAndAsk = () => {
      process.kill(pids[0]!, 'SIGSTOP');
      return Promise.all([
        fetch(`${admin}/readyz`).then(read),
        fetch(`${admin}/metrics`).then(read),
        runMeanwhile('status'),
        runMeanwhile('reload'),
      ]);
    };
    let [health, metrics, status, reload] = await stopAndAsk();
    // A command that needs ten seconds to start finds the worker replaced. Its timeout doubles each time.
    for (let tries = 0; tries < 3 && (status.status === 0 || reload.status === 0); tries += 1) {
      await expect.poll(workerPids).toHaveLength(2);
      pids = await workerPids();
      [health, metrics, status, reload] = await stopAndAsk();
    }
    const [hanging] = pids;
    expect([health.status, health.text]).toEqual([
      503,
      expect.stringMatching(
        `worker 0 \\(pid ${hanging}\\) (did not answer \\W+status\\W+ within 2 s|has not answered for)`,
      ),
    ]);
    expect(metrics.text).toMatch(/^pagegate_workers 1$/m);
    expect([status.status, status.stdout]).toEqual([4, expect.stringMatching(/no answer/)]);
    expect([reload.status, reload.stdout]).toEqual([
      6,
      expect.stringMatching(/Worker 0 did not reload: it did not answer for \d+ s and was killed/),
    ]);
    await expect.poll(workerPids).toEqual([expect.any(Number), pids[1]]);
    expect(isAlive(hanging!)).toBe(false);
    expect(output).toMatch(/"worker_hung".*"worker":0/);
    expect(output).not.toContain('could not start');
    await expect.poll(async () => (await fetch(`${admin}/readyz`)).status).toBe(200);
    expect((await read(await fetch(`${admin}/metrics`))).text).toMatch(/^pagegate_workers 2$/m);
  });

  it('takes its workers along when the primary is killed, and the next start works', async () => {
    await serve();
    const pids = await workerPids();
    server!.kill('SIGKILL');
    await once(server!, 'exit');
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    const url = await serve();
    expect((await ask(url)).status).toBe(200);
    server!.kill('SIGTERM');
    await once(server!, 'exit');
  });

  it('leaves its workers time to answer when the primary is killed during a stop', async () => {
    // Longer than a request waits for its reservation.
    const patient = join(dir, 'patient.json');
    const { config } = installation;
    writeFileSync(patient, JSON.stringify({ ...config, server: { ...config.server, workers: 2, drain_seconds: 30 } }));
    const url = await serve('--config', patient);
    const pids = childPids();
    const writer = writerPid();
    process.kill(writer, 'SIGSTOP');
    // This request waits for its reservation.
    const answer = ask(url);
    await expect.poll(waitingRequests).toBe(1);
    server!.kill('SIGTERM');
    await expect.poll(drainingWorkers).toBeGreaterThan(0);
    server!.kill('SIGKILL');
    await once(server!, 'exit');
    expect((await answer).body.error).toBe('ledger_unavailable');
    process.kill(writer, 'SIGKILL');
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  it.each<[string, string[], number, string]>([
    ['a flag that is not a number', ['--port', 'http'], 3, 'config_invalid'],
    ['plain HTTP beyond loopback', ['--host', '0.0.0.0'], 6, 'plain_http_refused'],
  ])('does not start: %s', (_, flags, code, error) => {
    const result = run('serve', ...flags);
    expect([result.status, result.stderr]).toEqual([code, expect.stringContaining(`[${error}]`)]);
  });
});
