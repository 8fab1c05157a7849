/** Files and folders that cannot be read or written: each command ends with an error code and an exit code, never with a stack trace. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { CLI, type Ended, pagegate, pagegateHere } from '../support/program.ts';

/** Signs a license and verifies it, with keys that are not in files. */
const SIGN =
  'echo "$2" > v.pem; echo "$1" | pagegate license issue --key - --key-name v --licensee A --dataset w --refreshes-until 2027-06-30' +
  ' | pagegate license verify - --trust v=v.pem';

/** Options for commands that could wait forever: kills them after a timeout. */
const UNHURRIED = { encoding: 'utf8', timeout: 300_000, killSignal: 'SIGKILL' } as const;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-unusable-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...names: string[]): string => join(folder, ...names);
const inPlace = (...words: string[]): Promise<Ended> => pagegateHere([...words, '--state-dir', at('state')]);
async function run(...words: string[]) {
  const { status, stderr } = await inPlace(...words);
  return { status, code: codeOf(stderr) };
}
const codeOf = (stderr: string): string => /\[(\w+)\]\n$/.exec(stderr)?.[1] ?? stderr;

describe('a license', () => {
  const install = (): ReturnType<typeof run> => {
    const { privateKey, publicKey } = createLicenseKey();
    const entitlement = { kind: 'refreshes_until', until: '2027-06-30' } as const;
    writeFileSync(at('v.pem'), publicKey);
    writeFileSync(at('l.json'), issueLicense({ licensee: 'Acme', dataset: 'web', entitlement }, privateKey, 'v'));
    return run('license', 'install', at('l.json'), '--trust', `v=${at('v.pem')}`);
  };

  it('is not installed if its folder cannot be created', async () => {
    writeFileSync(at('state'), 'a file');
    expect(await install()).toMatchObject({ status: 7, code: 'state_unavailable' });
  });

  it('leaves no temporary file if it cannot be put into place', async () => {
    mkdirSync(at('state/license/license.json/x'), { recursive: true });
    expect(await install()).toMatchObject({ status: 7, code: 'state_unavailable' });
    expect(readdirSync(at('state/license'))).toEqual(['license.json']);
  });

  it('is not reported as a missing installation if a named file is missing', async () => {
    expect(await run('license', 'verify', at('none.json'))).toMatchObject({ status: 7, code: 'license_unreadable' });
    expect(await run('license', 'verify', folder)).toMatchObject({ status: 7, code: 'license_unreadable' });
    expect(await run('license', 'show')).toMatchObject({ status: 6, code: 'license_missing' });
  });
});

describe('a pipe without a writer', () => {
  const KEYS = ['--key-name', 'v', '--licensee', 'Acme', '--dataset', 'web', '--refreshes-until', '2027-06-30'];
  const configured = (settings: object) => ['--config', write('config.json', JSON.stringify(settings))];
  const write = (name: string, text: string): string => {
    writeFileSync(at(name), text);
    return at(name);
  };

  it.each<[string, string, () => string[]]>([
    ['a configuration', 'config_unreadable', () => ['plan', 'list', '--config', at('pipe')]],
    ['a policy', 'policy_missing', () => ['policy', 'check', at('pipe')]],
    ['a policy to compare with', 'policy_missing', () => ['policy', 'diff', 'shipped', at('pipe')]],
    ['cases of a policy', 'policy_missing', () => ['policy', 'test', at('pipe')]],
    [
      'the configured policy',
      'policy_missing',
      () => ['explain', 'https://example.com/', ...configured({ policy: { file: at('pipe') } })],
    ],
    ['a register file', 'register_unreadable', () => ['register', 'validate', at('pipe')]],
    ['a license', 'license_unreadable', () => ['license', 'verify', at('pipe')]],
    ['a key to trust', 'bad_license_key', () => ['license', 'show', '--trust', `v=${at('pipe')}`]],
    [
      'a configured key',
      'config_invalid',
      () => ['license', 'show', ...configured({ license: { trusted_keys: { v: at('pipe') } } })],
    ],
    [
      'a configured key for drops',
      'config_invalid',
      () => ['refresh', folder, ...configured({ refresh: { trusted_keys: { v: at('pipe') } } })],
    ],
    ['a key to sign a license', 'bad_license_key', () => ['license', 'issue', '--key', at('pipe'), ...KEYS]],
    ['a key to sign a drop', 'signing_key_invalid', () => ['drop', 'sign', folder, '--key', at('pipe')]],
    ['the plans', 'bad_plan_catalogue', () => ['plan', 'list', ...inState('plans.json')]],
    ['the installed license', 'license_unreadable', () => ['license', 'show', ...inState('license/license.json')]],
    ['the ledger', 'ledger_unavailable', () => ['account', 'create', 'acme', ...inState('ledger/ledger.sqlite')]],
    ['the list of withdrawn drops', 'store_damaged', () => ['generations', 'list', ...inState('index/withdrawn.json')]],
    ['a backup', 'restore_refused', () => ['account', 'restore', installed()]],
    ['a manifest', 'drop_file_kind', () => ['drop', 'verify', drop(), '--unsigned']],
  ])('is refused instead of %s: %s', (_what, code, words) => {
    execFileSync('mkfifo', ['-m', '600', at('pipe')]);
    const env = { ...process.env, PAGEGATE_STATE_DIR: at('state') };
    const { signal, stderr } = pagegate(words(), { ...UNHURRIED, env });
    expect([signal, stderr]).toEqual([null, expect.stringMatching(`\\[${code}\\]\n$`)]);
  });

  /** Puts the pipe into the state directory under this name. Returns no arguments. */
  function inState(name: string): string[] {
    mkdirSync(dirname(at('state', name)), { recursive: true });
    renameSync(at('pipe'), at('state', name));
    return [];
  }

  function installed(): string {
    mkdirSync(at('state/keys'), { recursive: true });
    return at('pipe');
  }

  function drop(): string {
    mkdirSync(at('drop'));
    renameSync(at('pipe'), at('drop/manifest.json'));
    return at('drop');
  }
});

describe('standard input', () => {
  const shell = (line: string, ...words: string[]) =>
    spawnSync('bash', ['-c', `pagegate() { "${process.execPath}" "${CLI}" "$@"; }; ${line}`, 'bash', ...words], {
      ...UNHURRIED,
      cwd: folder,
    });

  it.each([
    ['a policy', `echo '{"format":"pagegate-policy/1"}' | pagegate policy check -`, 'valid: '],
    ['cases', `echo '[{"url":"a.com","expect":{"verdict":"flag"}}]' | pagegate policy test -`, '1 of 1 cases'],
    ['a key, and the license it signs', SIGN, 'The signature is valid.'],
  ])('is read if a command gets a dash: %s', (_what, line, expected) => {
    const { publicKey, privateKey } = createLicenseKey();
    const { stdout, stderr } = shell(line, privateKey, publicKey);
    expect(stdout + stderr).toContain(expected);
  });
});

describe('a key pair', () => {
  const keygen = (name: string) => pagegateHere(['license', 'keygen', '--out', at(name)]);

  it.each(['private', 'public'])('is written completely or not at all if the %s file exists', async (which) => {
    writeFileSync(at(`v.${which}.pem`), 'mine');
    const { status, stderr } = await keygen('v');
    expect(status).toBe(7);
    expect(stderr).toContain('[key_pair_not_written]');
    expect(readdirSync(folder)).toEqual([`v.${which}.pem`]);
  });

  it('leaves nothing if it does not fit on the disk, so that it can be created again', async () => {
    // A limit on file sizes simulates a full disk.
    const script = 'ulimit -f 0; exec "$@"';
    const words = [process.execPath, CLI, 'license', 'keygen', '--out', at('v')];
    const env = { ...process.env, LC_ALL: 'C', NODE_DISABLE_COMPILE_CACHE: '1' };
    const { status, stderr } = spawnSync('bash', ['-c', script, 'bash', ...words], { ...UNHURRIED, env });
    expect([status, stderr]).toEqual([7, expect.stringMatching(/EFBIG.*\[key_pair_not_written\]/)]);
    expect(readdirSync(folder)).toEqual([]);
    expect((await keygen('v')).status).toBe(0);
  });

  it('is not written if the folder does not exist', async () => {
    expect((await keygen('none/v')).stderr).toContain('[key_pair_not_written]');
  });
});

describe('the server', () => {
  const serve = (...words: string[]) => {
    const all = ['serve', '--port', '0', '--admin-port', '0', '--state-dir', at('state'), ...words];
    const { status, stderr, signal } = pagegate(all, UNHURRIED);
    return { status, signal, code: codeOf(stderr) };
  };

  it('does not start if its folder cannot be created', () => {
    writeFileSync(at('state'), 'a file');
    expect(serve()).toMatchObject({ status: 7, code: 'state_unavailable' });
  });

  it('does not start with an invalid address of a fleet, and creates nothing', () => {
    writeFileSync(at('fleet.json'), '{"ledger":{"url":"mysql://u@h/d"}}');
    const { status, code } = serve('--config', at('fleet.json'));
    expect({ status, code }).toEqual({ status: 3, code: 'bad_ledger_url' });
    expect(readdirSync(folder)).toEqual(['fleet.json']);
  });

  it('ends, with its ledger writer, if it cannot create its files', () => {
    // A path that cannot be removed stands for a folder of another user.
    mkdirSync(at('state/run/burst-1/x'), { recursive: true });
    expect(serve()).toMatchObject({ status: 7, signal: null, code: 'state_unavailable' });
  });
});

describe('the store and the index', () => {
  it('generations that cannot be listed are not reported as an empty list', async () => {
    mkdirSync(at('state/index'), { recursive: true });
    writeFileSync(at('state/index/generations'), 'a file');
    expect(await run('generations', 'list')).toMatchObject({ status: 7, code: 'store_unavailable' });
  });

  it('an index that cannot be opened is not treated as missing', async () => {
    mkdirSync(at('state/index'), { recursive: true });
    symlinkSync('current', at('state/index/current'));
    expect(await run('explain', 'https://example.com/')).toMatchObject({ status: 7, code: 'index_unreadable' });
    rmSync(at('state/index/current'));
    expect(await run('explain', 'https://example.com/')).toMatchObject({ status: 0 });
  });
});

it('a plan catalog that cannot be read is not treated as missing', async () => {
  mkdirSync(at('state'));
  symlinkSync('none.json', at('state/plans.json'));
  expect(await run('plan', 'list')).toMatchObject({ status: 3, code: 'bad_plan_catalogue' });
});

describe('an unused state directory, such as a mistyped one', () => {
  const REFRESH = ['refresh', fileURLToPath(new URL('../../data/sample', import.meta.url)), '--unsigned'];

  it.each([
    [4, 'no_installation', ['console', 'user', 'add', 'dana', '--role', 'viewer']],
    [4, 'no_installation', ['console', 'user', 'list']],
    [4, 'no_installation', ['console', 'link', 'dana']],
    [4, 'no_installation', ['account', 'restore', CLI, '--accept-unknown-usage']],
    [6, 'license_missing', REFRESH],
    [3, 'manifest_missing', ['refresh', '/', '--unsigned']],
    [4, 'nothing_to_roll_back', ['rollback']],
    [0, '', ['prune']],
    [4, 'no_ledger', ['account', 'subscribe', 'acme', '--plan', 'pro', '--reference', 'ONE']],
    [4, 'no_ledger', ['account', 'backup', '/nope/copy']],
    [4, 'no_ledger', ['key', 'issue', 'acme']],
    [4, 'no_ledger', ['ledger', 'move', '--to', 'postgres://127.0.0.1:1/x']],
    [4, 'server_not_running', ['reload']],
    [7, 'license_unreadable', ['license', 'install', '/nope/license.json']],
  ])('is left unchanged: %i %s of %j', async (status, code, words) => {
    expect(await run(...words)).toMatchObject({ status, code });
    expect(readdirSync(folder)).toEqual([]);
    mkdirSync(at('state'));
    expect(await run(...words)).toMatchObject({ status, code });
    expect(readdirSync(at('state'))).toEqual([]);
  });
});

it('a new ledger is named when an account creates it, an existing one is not', async () => {
  const saidOf = async (name: string) => (await inPlace('account', 'create', name)).stdout;
  expect(await saidOf('acme')).toContain(`\nledger   new: ${at('state/ledger/ledger.sqlite')}\n`);
  expect(await saidOf('other')).not.toContain('ledger');
});

describe('a backup', () => {
  it.each(['none/b.sqlite', 'state/ledger/ledger.sqlite/b'])(
    'to %s, which cannot be written, is reported',
    async (name) => {
      expect(await run('account', 'create', 'acme')).toMatchObject({ status: 0 });
      expect(await run('account', 'backup', at(name))).toMatchObject({ status: 7, code: 'backup_failed' });
      expect(existsSync(at(name))).toBe(false);
    },
  );

  it('is not restored into a folder that cannot be created', async () => {
    writeFileSync(at('state'), 'a file');
    expect(await run('account', 'restore', CLI)).toMatchObject({ status: 7, code: 'ledger_unavailable' });
  });
});

describe.runIf(process.getuid?.() === 0)('a socket of another user', () => {
  it('is not reported as a server that is not running', () => {
    mkdirSync(at('state/run'), { recursive: true, mode: 0o700 });
    const { status, stderr } = pagegate(['status', '--state-dir', at('state')], {
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
    });
    expect([status, /\[(\w+)\]\n$/.exec(stderr)?.[1]]).toEqual([6, 'server_forbidden']);
  });
});

describe('a working directory that was removed', () => {
  const runThere = (...words: string[]) => {
    const removed = at('gone');
    mkdirSync(removed);
    // Node runs the program directly: a shell would print a line of its own.
    const script = 'cd "$0" && rmdir "$0" && exec "$@"';
    return spawnSync('sh', ['-c', script, removed, process.execPath, CLI, ...words], UNHURRIED);
  };

  it.each([
    [['status']],
    [['account', 'list', '--state-dir', 'state']],
    [['serve', '--state-dir', 'state']],
    [['refresh', 'drop']],
  ])('ends %j with one line', (words) => {
    const { status, stderr } = runThere(...words);
    expect(stderr).toMatch(
      /^pagegate: The directory that the command was started in has been removed[^\n]*\[no_working_directory\]\n$/,
    );
    expect(status).toBe(7);
  });

  it('does not matter if no path is relative to it', () => {
    expect(runThere('--version').status).toBe(0);
  });
});

describe.runIf(existsSync('/proc/self'))('a state directory that cannot be created', () => {
  it.each([
    ['state_unavailable', ['serve']],
    ['ledger_unavailable', ['account', 'create', 'x']],
  ])('ends with %s instead of retrying forever: %j', (code, words) => {
    const { status, stderr, signal } = pagegate([...words, '--state-dir', '/proc/nope'], UNHURRIED);
    expect([status, signal, /\[(\w+)\]\n$/.exec(stderr)?.[1]]).toEqual([7, null, code]);
  });
});

describe.runIf(process.getuid?.() === 0)('a state directory of another user', () => {
  const asNobody = (...words: string[]) =>
    pagegate([...words, '--state-dir', at('state')], { ...UNHURRIED, uid: 65_534, gid: 65_534, cwd: '/' });

  it.each([
    ['state_unavailable', ['plan', 'list']],
    ['ledger_unavailable', ['account', 'list']],
    ['ledger_unavailable', ['key', 'show', 'acme']],
    ['ledger_unavailable', ['account', 'create', 'acme']],
    ['store_unavailable', ['generations', 'list']],
  ])('is not reported as damaged: %s of %j', (code, words) => {
    mkdirSync(at('state/index'), { recursive: true });
    chmodSync(folder, 0o755);
    chmodSync(at('state'), 0o700);
    const { status, stderr } = asNobody(...words);
    expect([status, stderr]).toEqual([7, expect.stringMatching(`EACCES.*\\[${code}\\]\n$`)]);
  });

  it('with read access only: the reason is given once', () => {
    mkdirSync(at('state'));
    chmodSync(folder, 0o755);
    const { status, stderr } = asNobody('account', 'create', 'acme');
    expect([status, stderr]).toEqual([
      7,
      expect.stringMatching(/: EACCES: permission denied.*\[ledger_unavailable\]\n$/),
    ]);
    expect(stderr).not.toMatch(/EACCES.*EACCES/);
  });

  it('is the first finding of doctor, which does not report that no server runs', () => {
    mkdirSync(at('state/run'), { recursive: true });
    chmodSync(folder, 0o755);
    chmodSync(at('state'), 0o700);
    const { status, stdout } = asNobody('doctor');
    expect(status).toBe(7);
    expect(stdout).toMatch(/PROBLEM +permissions +this user cannot use .*belongs to user 0 and has mode 0700\n/);
    expect(stdout.match(/ permissions /g)).toHaveLength(1);
    expect(stdout).toMatch(/PROBLEM +server +server_forbidden/);
  });
});

describe.runIf(process.getuid?.() === 0)('root in a state directory of another user', () => {
  const errorOf = async (...words: string[]) => (await inPlace(...words)).stderr;

  it('gets a message when it writes, and only then', async () => {
    mkdirSync(at('state'));
    expect(await errorOf('account', 'create', 'acme')).toBe('');
    chownSync(at('state'), 65_534, 65_534);
    const warning = /^Warning: this runs as root, and .*\/state belongs to user 65534, whose server cannot change /;
    expect(await errorOf('account', 'create', 'other')).toMatch(warning);
    expect(await errorOf('console', 'user', 'list')).toMatch(warning);
    expect(await errorOf('prune')).toMatch(warning);
    expect(await errorOf('plan', 'list')).toBe('');
    expect(await errorOf('generations', 'list')).toBe('');
  });
});

it('a console link says so if the console is off', async () => {
  const errorOf = async (...words: string[]) =>
    (await inPlace('console', 'user', 'add', ...words, '--role', 'viewer')).stderr;
  mkdirSync(at('state/license'), { recursive: true });
  expect(await errorOf('dana')).toContain('Warning: the console is off: set console.enabled');
  writeFileSync(at('on.json'), '{"console":{"enabled":true}}');
  expect(await errorOf('eve', '--config', at('on.json'))).toBe('');
});

describe.runIf(process.getuid?.() === 0)('a user without a name on the host, as in a container', () => {
  const NAMELESS = 54_321;
  const asNameless = (...words: string[]) =>
    pagegate([...words, '--state-dir', at('state')], { ...UNHURRIED, uid: NAMELESS, gid: NAMELESS, cwd: '/' });

  it('runs commands, and is recorded by its number in the audit', () => {
    mkdirSync(at('state'));
    chmodSync(folder, 0o755);
    chownSync(at('state'), NAMELESS, NAMELESS);
    expect(asNameless('account', 'create', 'acme')).toMatchObject({ status: 0, stderr: '' });
    const { stdout } = asNameless('account', 'audit', '--json');
    expect(JSON.parse(stdout)).toMatchObject([{ action: 'account.create', actor: `uid ${NAMELESS}` }]);
    expect(asNameless('refresh', '/')).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('[manifest_missing]'),
    });
    expect(asNameless('console', 'user', 'add', 'dana', '--role', 'viewer')).toMatchObject({ status: 0 });
  });
});

describe('a checkout without installed packages', () => {
  it('gets one line that says what to do', () => {
    const launcher = fileURLToPath(new URL('../../src/pagegate', import.meta.url));
    mkdirSync(at('src'));
    copyFileSync(launcher, at('src/pagegate'));
    const { status, stderr } = spawnSync(at('src/pagegate'), ['doctor'], UNHURRIED);
    expect(stderr).toMatch(/^pagegate: \S+\/node_modules\/\.bin\/node is not there[^\n]* "make install"[^\n]*\n$/);
    expect(status).toBe(7);
  });
});
