/** The account commands if there is no ledger or if it is lost: only `account create` creates one, and only once. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { EXIT } from '../../src/errors.ts';
import { Reserver } from '../../src/ledger/writer/reserver.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { noteInAudit } from '../../src/refresh-steps/audit-note.ts';
import { type Ended, pagegateHere } from '../support/program.ts';

let state: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'pagegate-commands-'));
});
afterEach(() => rmSync(state, { recursive: true, force: true }));

const run = (line: string): Promise<Ended> => pagegateHere([...line.split(' '), '--state-dir', state]);

const NEEDING = [
  'account list --json',
  'account show acme',
  'account usage',
  'account audit',
  'account subscribe acme --plan pro --reference INV-1',
  'account check',
  'key show acme',
];

describe('without a ledger', () => {
  it.each(NEEDING)('%s says so and creates nothing', async (line) => {
    const { status, stderr } = await run(line);
    expect(status).toBe(4);
    expect(stderr).toContain('account create');
    expect(stderr).toContain(join(state, 'ledger', 'ledger.sqlite'));
    expect(readdirSync(state)).toEqual([]);
  });

  it('plan list works', async () => {
    expect((await run('plan list')).status).toBe(0);
    expect(readdirSync(state)).toEqual([]);
  });

  it('account create creates it', async () => {
    expect((await run('account create acme')).status).toBe(0);
    expect(JSON.parse((await run('account list --json')).stdout)).toMatchObject([{ name: 'acme' }]);
  });
});

describe('an invalid plan catalog', () => {
  beforeEach(async () => {
    await run('account create acme');
    await run('account subscribe acme --plan pro --reference INV-1');
    writeFileSync(join(state, 'plans.json'), '{');
  });

  it.each([
    'account list',
    'account show acme',
    'account usage',
    'account audit',
    'account correct acme --used 1 --note why',
    'account create beta --with-key',
    'key show acme',
    'key rotate acme',
    'account suspend acme',
    'key revoke acme 1',
  ])('does not stop %s, which chooses no plan', async (line) => {
    const { status, stderr } = await run(line);
    expect([status, stderr]).toEqual([0, '']);
  });

  it('stops a command that chooses a plan, and nothing changes', async () => {
    const { status, stderr } = await run('account subscribe acme --plan business --reference INV-2');
    expect([status, stderr]).toEqual([3, expect.stringMatching(/plans\.json.*\[bad_plan_catalogue\]\n$/)]);
    expect(JSON.parse((await run('account show acme --json')).stdout)).toMatchObject({ plan: 'pro' });
  });

  it('does not keep a refresh out of the audit', async () => {
    const change = { generation: 2, revision: 2, previousGeneration: 1 };
    const config = loadConfig({ env: {}, flags: { state_dir: state } });
    expect(await noteInAudit(config, 'test', 'index.refresh', change)).toBeUndefined();
    expect(JSON.parse((await run('account audit --json --last 1')).stdout)).toMatchObject([
      { action: 'index.refresh' },
    ]);
  });
});

describe('a number', () => {
  it.each([
    ['account subscribe acme --plan custom --reference R-1 --limit', ['0x10', '1e3', '0', '-1', ' 7', '1.0', '']],
    ['account usage --days', ['0x10', '1e1']],
    ['account audit --last', ['0x10', '1e1', '100001']],
  ])('in %s must be decimal digits within its range', async (line, texts) => {
    expect((await run('account create acme')).status).toBe(0);
    for (const text of texts) {
      const { status, stderr } = await pagegateHere([...line.split(' '), text, '--state-dir', state]);
      expect([text, status, stderr]).toEqual([text, 2, expect.stringMatching(/whole number|expected 1 to 100000/)]);
    }
  });

  it('of lookups may be as large as a plan allows', async () => {
    expect((await run('account create acme')).status).toBe(0);
    const subscribe = 'account subscribe acme --plan custom --reference R-1 --json --limit';
    expect((await run(`${subscribe} 1000000000001`)).stderr).toContain('bad_plan_limit');
    expect(JSON.parse((await run(`${subscribe} 1000000000000`)).stdout)).toMatchObject({ quota_limit: 1e12 });
  });
});

describe('a rotated key', () => {
  it.each([
    ['90s', 90],
    ['15m', 900],
    ['24h', 86_400],
    ['7d', 604_800],
  ])('stays valid for the overlap, here %s, and then ends', async (overlap, seconds) => {
    await run('account create acme --with-key');
    const before = Math.floor(Date.now() / 1_000);
    expect((await run(`key rotate acme --overlap ${overlap}`)).status).toBe(0);
    const after = Math.ceil(Date.now() / 1_000);
    const [old, current] = JSON.parse((await run('account show acme --json')).stdout).keys;
    const ends = Date.parse(old.expires_at) / 1_000 - seconds;
    expect([ends >= before, ends <= after, current.expires_at]).toEqual([true, true, null]);
    expect((await run('account show acme')).stdout).toMatch(/^keys {5}number 1, until \S+Z; number 2, current$/m);
  });

  it('ends at once without an overlap, and a revoked key is reported as revoked', async () => {
    await run('account create acme --with-key');
    await run('key rotate acme');
    await run('key rotate acme');
    await run('key revoke acme 3');
    expect((await run('account show acme')).stdout).toMatch(
      /^keys {5}number 1, expired; number 2, expired; number 3, revoked$/m,
    );
  });
});

it.each(['account check', 'account backup copy.sqlite', 'account restore copy.sqlite'])(
  '%s is refused for the copy that a node of a fleet has',
  async (line) => {
    const config = join(state, 'pagegate.json');
    writeFileSync(config, JSON.stringify({ ledger: { url: 'postgres://pagegate@127.0.0.1:9/pagegate' } }));
    expect((await run(`${line} --config ${config}`)).stderr).toContain('[not_in_a_fleet]');
  },
);

it('damage in a ledger is also reported by the exit code', async () => {
  await run('account create acme --with-key');
  expect(await run('account check')).toMatchObject({ status: 0, stdout: 'The ledger is intact.\n' });
  const ledger = new Sqlite(join(state, 'ledger', 'ledger.sqlite'));
  ledger.pragma('foreign_keys = off');
  ledger.exec('DELETE FROM accounts');
  ledger.close();
  const { status, stdout } = await run('account check');
  expect([status, stdout]).toEqual([EXIT.corrupt, expect.stringContaining('its account is missing')]);
  expect(JSON.parse((await run('account check --json')).stdout)).toMatchObject({ ok: false });
});

describe('with a lost ledger', () => {
  it.each(['account create acme', ...NEEDING.slice(0, 2)])('%s says what to do and creates nothing', async (line) => {
    const file = join(state, 'ledger', 'ledger.sqlite');
    mkdirSync(join(state, 'ledger'));
    const reserver = new Reserver({ file });
    reserver.open();
    reserver.close();
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
    const { status, stderr } = await run(line);
    expect(status).toBe(7);
    expect(stderr).toMatch(/account restore BACKUP.*start over.*ledger\.id/s);
    expect(readdirSync(join(state, 'ledger'))).toEqual(['ledger.id']);
  });

  it('an empty file does not count as a ledger', async () => {
    mkdirSync(join(state, 'ledger'));
    writeFileSync(join(state, 'ledger', 'ledger.sqlite'), '');
    expect((await run('account list')).status).toBe(4);
    expect((await run('account create acme')).status).toBe(0);
  });
});

describe('account correct', () => {
  const used = async (): Promise<unknown> => JSON.parse((await run('account show acme --json')).stdout).quota_used;
  beforeEach(async () => {
    await run('account create acme');
    await run('account subscribe acme --plan custom --limit 100 --reference R-1');
  });

  it('resets a meter, and records who did it and why', async () => {
    expect((await run('account correct acme --used 90 --note restored')).status).toBe(0);
    expect(await used()).toBe(90);
    const { status, stdout } = await run('account correct acme --credit 15 --note lost --json');
    expect([status, JSON.parse(stdout).quota_used]).toEqual([0, 75]);
    expect(JSON.parse(stdout)).toMatchObject({ credited: 15 });
    expect((await run('account correct acme --credit 600 --note lost')).stdout).toMatch(
      /^75 lookups given back: no more were used\.\n/,
    );
    expect(await used()).toBe(0);
    expect((await run('account correct acme --used 3 --note set')).status).toBe(0);
    expect((await run('account correct acme --credit 1 --note one')).stdout).toMatch(/^1 lookup given back\.\n/);
    expect(await used()).toBe(2);
    // The text has the same times as the JSON.
    const at = /^(\S+Z) .*ledger\.correct/m.exec((await run('account audit acme')).stdout)?.[1];
    expect(at).toMatch(/T\d\d:\d\d:\d\dZ$/);
    const lines = JSON.parse((await run('account audit acme --json')).stdout);
    expect(lines[0]).toMatchObject({ at });
    expect(lines.slice(0, 4)).toMatchObject([
      { actor: 'ledger writer', action: 'ledger.correct', note: null, before: { used: 3 }, after: { used: 2 } },
      { action: 'account.correct', note: '{"credit":1} one' },
      { actor: 'ledger writer', action: 'ledger.correct', before: { used: 0 }, after: { used: 3 } },
      { action: 'account.correct', note: '{"used":3} set' },
    ]);
    expect((await run('account check')).status).toBe(0);
  });

  it.each([
    ['--note why', 3, 'bad_correction'],
    ['--credit 1', 2, 'note'],
    ['--used 101 --note why', 3, 'expected 0 to 100'],
    ['--cycle 1 --note why', 3, 'expected 0 to 0'],
    ['--credit 0 --note why', 2, 'whole number'],
    ['--credit 1 --used 1 --note why', 2, 'cannot be used with'],
    ['--credit 1 --cycle 0 --note why', 2, 'cannot be used with'],
    ['--credit 1 --note=', 2, "option '--note <text>' is empty"],
    [`--credit 1 --note ${'x'.repeat(201)}`, 3, 'got 201'],
  ])('is refused with %s', async (options, exit, expected) => {
    const { status, stderr } = await run(`account correct acme ${options}`);
    expect([status, stderr]).toEqual([exit, expect.stringContaining(expected)]);
    expect(await used()).toBe(0);
  });

  it('can set the largest limit', async () => {
    await run('account subscribe acme --plan custom --limit 1000000000000 --reference R-2');
    expect((await run('account correct acme --used 999999999999 --note full')).status).toBe(0);
    expect(await used()).toBe(999_999_999_999);
  });

  it('is refused for an account without a plan', async () => {
    await run('account create beta');
    expect((await run('account correct beta --credit 1 --note why')).stderr).toContain('has no plan yet');
  });
});
