/** All machine-readable output has one style: runs every command with `--json` and checks its whole output, the logs and the API. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli.ts';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { removeCountersOf } from '../../tools/remove-counters.ts';
import { isAlive } from '../support/processes.ts';
import { CLI, pagegateHere } from '../support/program.ts';

const SAMPLE = fileURLToPath(new URL('../../data/sample', import.meta.url));
const DATASET = 'pagegate-sample';

/** Commands that need the PostgreSQL database of a fleet. */
const NEED_A_FLEET = ['fleet status', 'fleet retire', 'ledger move'];

/** Maps whose keys are data, not field names: a policy's own entries, as in its file. */
const MAPS_OF_DATA = new Set(['policy diff: changes[].fields[].before', 'policy diff: changes[].fields[].after']);

/** Text fields that may consist of just a time. */
const WORDS = new Set(['doctor: checks[].found']);

const SNAKE_CASE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
/** The name of a time field; `time` is that of a log line. */
const TIME_NAME = /^(?:at|time|[a-z_]+_at)$/;
/** Whether a number can be seconds or milliseconds since 1970. Only values without a size unit in their name are checked. */
const isEpoch = (value: number): boolean => (value > 1.5e9 && value < 4e9) || (value > 1.5e12 && value < 4e12);

/** Returns the faults in names and times of a value, each with its path. */
function faultsOf(value: unknown, place: string, name = ''): string[] {
  if (MAPS_OF_DATA.has(place)) return [];
  if (Array.isArray(value)) return value.flatMap((one) => faultsOf(one, `${place}[]`, name));
  if (typeof value === 'string' && TIME.test(value) && !WORDS.has(place))
    return TIME_NAME.test(name) && value.endsWith('Z') ? [] : [`${place}: ${value} is no time in UTC under its name`];
  if (typeof value === 'number' && isEpoch(value) && !name.endsWith('_bytes')) return [`${place}: ${value} is a time`];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([inner, one]) => {
    const at = `${place}${place.endsWith(': ') ? '' : '.'}${inner}`;
    return [
      ...(SNAKE_CASE.test(inner) && !/(?:At|Ms|Bytes)$/.test(inner) ? [] : [`${at}: the name`]),
      ...faultsOf(one, at, inner),
    ];
  });
}

let dir: string;
let state: string;
let server: ChildProcess | undefined;
/** Process id of the successor of that server. */
let successorPid: number | undefined;
const seen = new Map<string, unknown[]>();
const log: string[] = [];
const answers: unknown[] = [];

/** Runs a command and keeps its output. If several outputs of a command are kept, they cover several cases. */
async function run(command: string, ...words: string[]): Promise<Record<string, unknown>> {
  const { status, stdout, stderr } = await pagegateHere([...command.split(' '), ...words, '--json'], { cwd: dir });
  const text = stdout === '' ? stderr : stdout;
  expect(text, `pagegate ${command} (${status}): ${stderr}`).toMatch(/^[[{]/);
  const json = JSON.parse(text);
  seen.set(command, [...(seen.get(command) ?? []), json]);
  return json;
}

const runHere = (command: string, ...words: string[]): Promise<Record<string, unknown>> =>
  run(command, ...words, '--config', 'pagegate.json');

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-json-names-'));
  state = join(dir, 'state');
  const { privateKey, publicKey } = createLicenseKey();
  const trusted = { trusted_keys: { vendor: 'vendor.pem' } };
  const files = {
    'vendor.pem': publicKey,
    'private.pem': privateKey,
    'license.json': issueLicense(
      { licensee: 'Test', dataset: DATASET, entitlement: { kind: 'refreshes_until', until: '2099-01-01' } },
      privateKey,
      'vendor',
    ),
    'pagegate.json': JSON.stringify({
      state_dir: 'state',
      server: { port: 0 },
      admin: { port: 0 },
      decision_log: { enabled: true },
      license: trusted,
      refresh: { ...trusted, drop: 'drop' },
    }),
    'policy.json': JSON.stringify({
      format: 'pagegate-policy/1',
      profile: 'strict',
      allow: [{ id: 'own', host: 'example.com', path: '/x', methods: ['GET'], note: 'Needed for the test.' }],
    }),
    'cases.json': JSON.stringify([
      {
        url: 'https://github.com/login',
        page_types: { login: 'https://github.com/login' },
        expect: { verdict: 'allow' },
      },
      { url: 'https://unknown.example.org/', expect: { verdict: 'flag' } },
    ]),
    'register.json': JSON.stringify({ agent_id: '7' }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  cpSync(SAMPLE, join(dir, 'drop'), { recursive: true });
});

afterAll(() => {
  if (server !== undefined && server.exitCode === null) server.kill('SIGKILL');
  if (successorPid !== undefined && isAlive(successorPid)) process.kill(successorPid, 'SIGKILL');
  removeCountersOf(state);
  rmSync(dir, { recursive: true, force: true });
});

/** Returns the paths of all commands that have an option. */
function commandsWith(flag: string, { commands }: Command, path: readonly string[] = []): string[] {
  return commands.flatMap((command) => {
    const inner = [...path, command.name()];
    const own = command.options.some(({ long }) => long === flag) ? [inner.join(' ')] : [];
    return [...own, ...commandsWith(flag, command, inner)];
  });
}

/** Runs everything that works without a server. */
async function runOffline(): Promise<void> {
  await run('drop manifest', 'drop', '--dataset', DATASET, '--created', '2026-11-21T01:00:00+01:00');
  await run('drop sign', 'drop', '--key', 'private.pem');
  await runHere('drop verify', 'drop');
  await runHere('license verify', 'license.json');
  await runHere('license install', 'license.json');
  await runHere('license show');
  await run('build', 'drop', '--out', 'index.pgx');
  await run('build', 'nowhere', '--out', 'index.pgx');
  await run('inspect', 'index.pgx');
  await run('verify', 'index.pgx');
  const bytes = readFileSync(join(dir, 'index.pgx'));
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(join(dir, 'damaged.pgx'), bytes);
  expect((await run('verify', 'damaged.pgx'))['damages']).not.toEqual([]);
  await run('diff', 'index.pgx', 'index.pgx');
  await run('lookup', 'github.com', 'nowhere.example', '--index', 'index.pgx');
  await run('explain', 'https://www.twitch.tv/login?x=1', '--index', 'index.pgx');
  await run('policy check', 'policy.json');
  await run('policy test', 'cases.json');
  await run('policy diff', 'shipped', 'policy.json', '--cases', 'cases.json');
  await run('register validate', 'register.json');
  await runHere('refresh');
  await runHere('refresh', '--rebuild');
  await runHere('rollback');
  await runHere('refresh');
  await runHere('generations list');
  await runHere('prune', '--keep', '1');
  await runHere('plan list');
  await runHere('doctor');
  for (const command of ['add', 'role', 'list', 'reset', 'remove'])
    await runHere(
      `console user ${command}`,
      ...(command === 'list' ? [] : ['dana']),
      ...(command === 'add' || command === 'role' ? ['--role', 'viewer'] : []),
    );
  await runHere('console user add', 'erin', '--role', 'operator');
  await runHere('console link', 'erin');
}

async function runAccounts(): Promise<void> {
  await runHere('account create', 'acme');
  await runHere('key issue', 'acme');
  await runHere('account subscribe', 'acme', '--plan', 'pro_plus', '--reference', 'R-1');
  await runHere('account subscribe', 'acme', '--plan', 'pro', '--reference', 'R-2');
  await runHere('account show', 'acme');
  await runHere('account backup', 'backup.sqlite');
  await runHere('account keep-plan', 'acme');
  await runHere('key rotate', 'acme', '--overlap', '1h');
  await runHere('key show', 'acme');
  await runHere('key revoke', 'acme', '1');
  await runHere('account suspend', 'acme');
  await runHere('account reactivate', 'acme');
  await runHere('account correct', 'acme', '--used', '20', '--note', 'test');
  await runHere('account correct', 'acme', '--credit', '5', '--note', 'test');
  await runHere('account accept-clock');
  await runHere('account list');
  await runHere('account check');
  await runHere('account audit');
  await runHere('account restore', 'backup.sqlite');
  await runHere('account usage', 'acme');
  await runHere('account audit');
  await runHere('account close', 'acme');
  await runHere('account create', 'other', '--with-key');
  await runHere('account create', 'first');
  await runHere('account subscribe', 'first', '--plan', 'pro', '--reference', 'R-3');
}

/** Requests the responses of the API: a charged one, and one for each kind of refusal with its own fields. */
async function askAll(url: string): Promise<void> {
  const keyOf = async (account: string): Promise<string> => String((await runHere('key show', account))['key']);
  const [other, first] = [await keyOf('other'), await keyOf('first')];
  for (const [key, value] of [
    [first, 'https://www.twitch.tv/login'],
    [first, 'localhost'],
    [other, 'example.com'],
    ['', 'example.com'],
  ] as const) {
    const response = await fetch(`${url}?${new URLSearchParams({ url: value })}`, { headers: { 'x-api-key': key } });
    answers.push(await response.json());
  }
}

const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));

/** Starts the server, sends every request, restarts it, and stops the successor. */
async function runServer(): Promise<void> {
  let stdout = '';
  const child = spawn(process.execPath, [CLI, 'serve', '--config', 'pagegate.json'], { cwd: dir });
  server = child;
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => log.push(String(chunk)));
  await expect.poll(() => stdout).toMatch(/pagegate serves \S+ /);
  await runHere('status');
  await runHere('reload');
  await askAll(/pagegate serves (\S+) /.exec(stdout)![1]!);
  const { pid } = (await runHere('restart')) as { pid: number };
  successorPid = pid;
  await runHere('status');
  await runHere('drain');
  await expect.poll(() => isAlive(pid)).toBe(false);
}

describe('names and times in machine-readable output', () => {
  it('are reported if they are wrong', () => {
    const wrong = {
      sizeBytes: 1,
      seen: 1_795_411_142,
      made: '2026-11-21T00:00:00Z',
      ends_at: '2026-11-21T01:00:00+01:00',
    };
    expect(faultsOf([wrong], 'x: ').map((fault) => fault.replace(/^x: \[\]\.(\w+).*/, '$1'))).toEqual(
      Object.keys(wrong),
    );
    expect(faultsOf({ at: '2026-11-21T00:00:00Z', size_bytes: 2e9, steps_ms: { scan: 1 } }, 'x: ')).toEqual([]);
  });

  it('have one style in all JSON of all commands, in the logs and in the API', async () => {
    await runOffline();
    await runAccounts();
    await runServer();
    const wanted = commandsWith('--json', await createProgram(true)).filter((name) => !NEED_A_FLEET.includes(name));
    expect([...seen.keys()].sort()).toEqual(wanted.sort());
    const decisions = readFileSync(join(state, 'log', 'decisions-0.ndjson'), 'utf8');
    const others = { log: linesOf(log.join('')), 'decision log': linesOf(decisions), API: answers };
    for (const [name, documents] of Object.entries(others)) expect(documents, name).not.toEqual([]);
    const all = [...seen, ...Object.entries(others)];
    expect([
      ...new Set(all.flatMap(([name, documents]) => documents.flatMap((one) => faultsOf(one, `${name}: `)))),
    ]).toEqual([]);
  });
});
