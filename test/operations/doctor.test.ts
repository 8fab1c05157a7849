/** Each check of `pagegate doctor`, with a fault made for it. The command itself is tested in test/refresh. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Config, type ConfigOverrides, loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { type Check, type CheckResult, failed, runChecks } from '../../src/doctor/check.ts';
import { HOST_CHECKS } from '../../src/doctor/host-checks.ts';
import { STATE_CHECKS } from '../../src/doctor/installation-checks.ts';
import { PagegateError } from '../../src/errors.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { listenControl } from '../../src/server/control-socket.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { writeIndex } from '../support/index-file.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pagegate-doctor-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const vendor = createLicenseKey();
const configOf = (flags: ConfigOverrides = {}): Config =>
  loadConfig({
    env: {},
    flags: { state_dir: join(root, 'state'), license: { trusted_keys: { vendor: vendor.publicKey } }, ...flags },
  });

function checkAll(id: string, config: Config): Promise<CheckResult[]> {
  const one = [...HOST_CHECKS, ...STATE_CHECKS].find((candidate) => candidate.id === id);
  return runChecks([one as Check], config);
}

async function check(id: string, config: Config): Promise<CheckResult> {
  const [result] = await checkAll(id, config);
  return result!;
}

function installLicense(until: string, dataset = 'test'): void {
  const entitlement = { kind: 'refreshes_until', until } as const;
  mkdirSync(join(root, 'state/license'), { recursive: true });
  const text = issueLicense({ licensee: 'Test', dataset, entitlement }, vendor.privateKey, 'vendor');
  writeFileSync(join(root, 'state/license/license.json'), text);
}

function installIndex(metadata: object = {}, entries = [{ domain: 'a.example.com', page_types: {} }]): string {
  const { indexDir } = statePaths(configOf());
  const file = join(indexDir, 'generations/1/index.pgx');
  const created = '2026-01-02T03:04:05Z';
  writeIndex(file, entries, {
    generation: 1,
    dataset: 'test',
    created,
    ...metadata,
  });
  symlinkSync('generations/1', join(indexDir, 'current'));
  return file;
}

/** The report of the index from `installIndex`. */
const REPORT = {
  format: 'pagegate-generation/1',
  generation: 1,
  dataset: 'test',
  revision: 1,
  created: '2026-01-01T00:00:00Z',
  manifestSha256: '0'.repeat(64),
  signedBy: null,
  recordCount: 1,
  sizeBytes: 1,
  builtAt: '2026-01-01T00:00:00Z',
};

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

test('a failing check does not end the others, and says what to do', async () => {
  const checks: Check[] = [
    { id: 'one', run: () => Promise.reject(new PagegateError('license_missing')) },
    { id: 'two', run: () => Promise.reject(Object.assign(new Error('denied'), { code: 'EACCES' })) },
    { id: 'three', run: () => ({ status: 'ok', found: 'fine' }) },
  ];
  expect(await runChecks(checks, configOf())).toMatchObject([
    { id: 'one', status: 'problem', found: 'license_missing', advice: expect.stringContaining('license install') },
    { id: 'two', status: 'problem', found: 'EACCES', advice: expect.stringContaining('denied') },
    { id: 'three', status: 'ok' },
  ]);
  expect(failed('nonsense').status).toBe('problem');
});

test('the host of the tests is suitable', async () => {
  for (const id of ['platform', 'transport', 'mapping', 'clock']) {
    expect(await check(id, configOf())).toMatchObject({ id, status: 'ok' });
  }
});

test('more connections than open files, or more workers than processors, are warnings', async () => {
  const many = configOf({ server: { max_connections: 1_000_000, workers: 64 } });
  const [, files = ''] = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const limitFiles = (soft: number | string): unknown =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${soft}:`]);
  // Many machines allow a million open files.
  limitFiles(files === 'unlimited' ? 4_096 : Math.min(Number(files), 4_096));
  try {
    expect(await check('limits', many)).toMatchObject({ status: 'warning', found: expect.stringMatching(/^\d+ open/) });
  } finally {
    limitFiles(files);
  }
  expect(await check('memory', many)).toMatchObject({ status: 'warning', advice: expect.stringContaining('workers') });
});

describe('the license', () => {
  test('that ends much later is fine; one that ends soon or has ended is a warning', async () => {
    installLicense(inDays(100));
    expect(await check('license', configOf())).toMatchObject({ status: 'ok' });
    installLicense(inDays(10));
    expect(await check('license', configOf())).toMatchObject({
      status: 'warning',
      advice: expect.stringContaining('ends in'),
    });
    installLicense(inDays(-10));
    expect(await check('license', configOf())).toMatchObject({
      status: 'warning',
      advice: expect.stringContaining('has ended'),
    });
  });

  test('that does not cover the served index, or has no trusted signature, is a problem', async () => {
    installIndex();
    installLicense(inDays(100), 'other');
    expect(await check('license', configOf())).toMatchObject({ status: 'problem', found: 'license_not_entitled' });
    installLicense(inDays(100));
    const stranger = configOf({ license: { trusted_keys: { vendor: createLicenseKey().publicKey } } });
    expect(await check('license', stranger)).toMatchObject({ status: 'problem', found: 'license_untrusted' });
  });
});

describe('the index', () => {
  test('is opened and described', async () => {
    installIndex();
    expect(await check('index', configOf())).toMatchObject({
      status: 'ok',
      found: expect.stringContaining('1 record,'),
    });
    expect(await check('versions', configOf())).toMatchObject({ status: 'ok' });
  });

  test('of a missing generation is a problem that names another one', async () => {
    const { indexDir } = statePaths(configOf());
    installIndex();
    renameSync(join(indexDir, 'generations/1'), join(indexDir, 'generations/3'));
    expect(await check('index', configOf())).toMatchObject({
      status: 'problem',
      found: 'the index of generation 1 is missing',
      advice: expect.stringMatching(/pagegate rollback --to 3$/),
    });
    rmSync(join(indexDir, 'generations'), { recursive: true });
    expect((await check('index', configOf())).advice).toBe('Build it from a drop: pagegate refresh DROP');
  });

  test('without records is a warning', async () => {
    installIndex({}, []);
    expect(await check('index', configOf())).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('0 records,'),
      advice: expect.stringContaining('pagegate rollback'),
    });
  });

  test('from the future, or of another Unicode version, is a warning', async () => {
    installIndex({ created: `${inDays(40)}T00:00:00Z`, unicodeVersion: '1.0' });
    expect(await check('index', configOf())).toMatchObject({
      status: 'warning',
      advice: expect.stringContaining('future'),
    });
    expect(await check('versions', configOf())).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('1.0'),
    });
  });

  test('that others may write, or a link that leads elsewhere, is a problem', async () => {
    chmodSync(installIndex(), 0o666);
    expect(await check('index', configOf())).toMatchObject({ status: 'problem', found: 'index_unsafe_mode' });
    rmSync(join(root, 'state/index/current'));
    symlinkSync('/etc', join(root, 'state/index/current'));
    expect(await check('index', configOf())).toMatchObject({ status: 'problem', found: 'store_damaged' });
  });

  test('with leftovers is a warning', async () => {
    installIndex();
    writeFileSync(join(root, 'state/index/generations/1/report.json'), JSON.stringify(REPORT));
    expect(await check('index_store', configOf())).toMatchObject({ status: 'ok' });
    mkdirSync(join(root, 'state/index/generations/.building-2'));
    expect(await check('index_store', configOf())).toMatchObject({
      status: 'warning',
      advice: expect.stringContaining('prune'),
    });
    writeFileSync(join(root, 'state/index/withdrawn.json'), '{}');
    expect(await check('index_store', configOf())).toMatchObject({
      status: 'problem',
      found: 'store_damaged',
      advice: expect.stringContaining('withdrawn.json'),
    });
  });

  test.each([
    ['without a report', undefined],
    ['with the report of another drop', { ...REPORT, manifestSha256: 'cd'.repeat(32) }],
  ])('that is served %s must be built again', async (_what, report) => {
    installIndex();
    if (report !== undefined)
      writeFileSync(join(root, 'state/index/generations/1/report.json'), JSON.stringify(report));
    expect(await check('index_store', configOf())).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('generation 1, which is served'),
      advice: expect.stringContaining('pagegate refresh DROP'),
    });
  });

  test('with an older generation that has no report names its folder alone', async () => {
    installIndex();
    writeFileSync(join(root, 'state/index/generations/1/report.json'), JSON.stringify(REPORT));
    mkdirSync(join(root, 'state/index/generations/7'));
    expect(await check('index_store', configOf())).toMatchObject({
      status: 'warning',
      found: 'generation 7 has no report',
      advice: expect.stringContaining(join(root, 'state/index/generations/7,')),
    });
  });
});

describe('the permissions', () => {
  const at = (...names: string[]): string => join(root, 'state', ...names);
  const problemsOf = async (config = configOf()): Promise<string[]> => {
    const results = await checkAll('permissions', config);
    return results.filter(({ status }) => status === 'problem').map(({ found }) => found);
  };

  test('of every folder and file that affects what is served are checked, and all findings are reported', async () => {
    const index = installIndex();
    installLicense(inDays(100));
    writeFileSync(at('plans.json'), '[]');
    const own = join(root, 'own.json');
    writeFileSync(own, '{}');
    const config = configOf({ policy: { file: own } });
    expect(await problemsOf(config)).toEqual([]);
    const open = ['index', 'index/generations', 'index/generations/1', 'license', 'license/license.json', 'plans.json'];
    for (const name of open) {
      chmodSync(at(name), 0o777);
      expect(await problemsOf(config)).toEqual([`${at(name)} has mode 0777`]);
      chmodSync(at(name), 0o755);
    }
    for (const path of [at('index'), index, at('license'), own]) chmodSync(path, 0o757);
    expect(await problemsOf(config)).toEqual(
      [at('index'), index, at('license'), own].map((path) => `${path} has mode 0757`),
    );
  });

  test('of a folder above the state directory matter, unless only owners may rename files in it', async () => {
    mkdirSync(at(), { recursive: true });
    chmodSync(root, 0o777);
    expect(await problemsOf()).toEqual([`${root} has mode 0777`]);
    chmodSync(root, 0o1777);
    expect(await problemsOf()).toEqual([]);
  });

  test('of a group are a warning', async () => {
    mkdirSync(at('license'), { recursive: true });
    chmodSync(at('license'), 0o775);
    expect(await checkAll('permissions', configOf())).toMatchObject([
      { status: 'warning', advice: expect.stringContaining('chmod g-w') },
    ]);
  });

  test('keys in the folder of the ledger are a warning that names no setting', async () => {
    mkdirSync(at('ledger'), { recursive: true });
    symlinkSync('ledger', at('keys'));
    const [result] = await checkAll('permissions', configOf());
    expect(result).toMatchObject({ status: 'warning', found: expect.stringContaining('in the folder of the ledger') });
    expect(result!.advice).not.toContain('key_file');
  });

  test.runIf(process.getuid?.() === 0)('an index that another user owns is a problem', async () => {
    const index = installIndex();
    chownSync(index, 65_534, 65_534);
    expect(await problemsOf()).toEqual([`${index} belongs to user 65534`]);
    // Root checks on behalf of the server's user.
    for (const path of ['', 'index', 'index/generations', 'index/generations/1']) chownSync(at(path), 65_534, 65_534);
    expect(await problemsOf()).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)(
    "files of root in the state directory of the server's user are a problem",
    async () => {
      installIndex();
      chownSync(at(), 65_534, 65_534);
      const [found, ...others] = await problemsOf();
      expect(others).toEqual([]);
      expect(found).toMatch(/belongs to user 65534, but root owns .*\/state\/index, .*index\.pgx$/);
    },
  );
});

describe('the listeners', () => {
  test('without TLS beyond loopback are reported as by serve', async () => {
    expect(await check('listeners', configOf())).toMatchObject({ status: 'ok' });
    expect(await check('listeners', configOf({ server: { host: '0.0.0.0' } }))).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('plain_http_refused'),
      advice: expect.stringContaining('plain_http_anywhere'),
    });
    const anywhere = { server: { host: '0.0.0.0', plain_http_anywhere: true }, admin: { host: '0.0.0.0' } };
    expect(await checkAll('listeners', configOf(anywhere))).toMatchObject([
      { status: 'warning', advice: expect.stringContaining('clear') },
      { status: 'warning', found: expect.stringContaining('admin.host') },
    ]);
  });

  test('whose address no interface has are warnings', async () => {
    // Addresses reserved for documentation (RFC 5737, RFC 3849): no host has them.
    const settings = {
      server: { host: '192.0.2.7', plain_http_anywhere: true },
      admin: { host: '2001:db8::7', enabled: false },
      console: { host: '2001:db8::7', enabled: false },
    };
    const found = async (more: ConfigOverrides): Promise<string[]> =>
      (await checkAll('listeners', configOf(more))).map((one) => one.found).filter((text) => /interface/.test(text));
    expect(await found(settings)).toEqual(['server.host is 192.0.2.7, which no interface of this host has']);
    expect(await found({ admin: { host: '2001:db8::7' } })).toHaveLength(1);
    expect(await found({ server: { host: '127.0.0.9' }, admin: { host: '0::0' } })).toEqual([]);
  });

  const inOwnNetwork = (command: string) =>
    spawnSync('unshare', ['--net', 'sh', '-c', `ip link set lo up && ${command}`], { encoding: 'utf8' });

  test.runIf(inOwnNetwork('true').status === 0)('whose address the kernel can bind anyway are fine', () => {
    const file = join(root, 'config.json');
    const settings = { state_dir: join(root, 'state'), server: { host: '192.0.2.7', plain_http_anywhere: true } };
    writeFileSync(file, JSON.stringify(settings));
    const program = `"${process.execPath}" "${join(import.meta.dirname, '../../src/cli.ts')}" doctor --config ${file}`;
    const finding = 'server.host is 192.0.2.7, which no interface of this host has';
    expect(inOwnNetwork(program).stdout).toContain(finding);
    const { stdout } = inOwnNetwork(`ip route add local 192.0.2.0/24 dev lo && ${program}`);
    expect(stdout).toContain('server.host is 192.0.2.7, without TLS');
    expect(stdout).not.toContain(finding);
  });

  test('that cannot all listen, or are refused, are problems', async () => {
    const all = { host: '0.0.0.0', plain_http_anywhere: true };
    const found = async (settings: ConfigOverrides): Promise<string[]> =>
      (await checkAll('listeners', configOf(settings)))
        .filter(({ status }) => status === 'problem')
        .map((one) => one.found);
    expect(await found({ server: { port: 18_751 }, admin: { port: 18_751 } })).toEqual([
      'server.port and admin.port are both 18751',
    ]);
    expect(await found({ server: { ...all, port: 18_751 }, admin: { port: 18_751 } })).toHaveLength(1);
    expect(await found({ server: { port: 18_751, host: '127.0.0.2' }, admin: { port: 18_751 } })).toEqual([]);
    expect(await found({ server: { port: 18_751 }, admin: { port: 18_751, enabled: false } })).toEqual([]);
    expect(await found({ console: { enabled: true, host: '0.0.0.0' } })).toEqual([
      'console.host is 0.0.0.0, without TLS',
    ]);
  });
});

describe('the ledger', () => {
  const makeLedger = async (): Promise<string> => {
    const { ledgerFile, ledgerKeyFile } = statePaths(configOf());
    const ledger = await openLedger({ file: ledgerFile, keyFile: ledgerKeyFile, actor: 'test' });
    await ledger.createAccount('one');
    await ledger.issueKey('one');
    await ledger.close();
    return ledgerFile;
  };

  test('with an account is fine and not readable by others; without one it is a warning', async () => {
    expect(await check('ledger', configOf())).toMatchObject({ status: 'warning' });
    await makeLedger();
    expect(await check('ledger', configOf())).toMatchObject({ status: 'ok', found: '1 account, intact' });
    expect(await check('permissions', configOf())).toMatchObject({ status: 'ok' });
  });

  test('whose keys are encrypted with another key is a warning', async () => {
    await makeLedger();
    const { ledgerKeyFile } = statePaths(configOf());
    const own = readFileSync(ledgerKeyFile);
    writeFileSync(ledgerKeyFile, 'ab'.repeat(32));
    const other = await check('ledger', configOf());
    expect(other).toMatchObject({
      status: 'warning',
      found: expect.stringMatching(/^1 API key encrypted with \w+; .* has the key \w+$/),
    });
    rmSync(ledgerKeyFile);
    const none = await check('ledger', configOf());
    expect(none).toMatchObject({ status: 'warning', found: expect.stringContaining('; there is no ') });
    // A node has a copy of the fleet's ledger.
    const fleet = configOf({ ledger: { url: 'postgres://pagegate@127.0.0.1/pagegate' } });
    mkdirSync(dirname(statePaths(fleet).ledgerFile));
    copyFileSync(statePaths(configOf()).ledgerFile, statePaths(fleet).ledgerFile);
    const node = await check('ledger', fleet);
    expect(node).toMatchObject({ status: 'warning', advice: expect.stringContaining('another node') });
    writeFileSync(ledgerKeyFile, own, { mode: 0o600 });
    expect(await check('ledger', configOf())).toMatchObject({ status: 'ok' });
  });

  test('with overwritten bytes, or with a key that others can read, is a problem', async () => {
    const file = await makeLedger();
    chmodSync(statePaths(configOf()).ledgerKeyFile, 0o644);
    expect(await check('permissions', configOf())).toMatchObject({
      status: 'problem',
      advice: expect.stringContaining('chmod'),
    });
    const bytes = readFileSync(file);
    bytes.fill(0xff, 4096, Math.min(bytes.length, 40_960));
    writeFileSync(file, bytes);
    expect((await check('ledger', configOf())).status).toBe('problem');
  });
});

describe.runIf(spawnSync('openssl', ['version']).status === 0)('the certificate', () => {
  const make = (name: string, ...dates: string[]): { certificate_file: string; key_file: string } => {
    const [certificate, key] = [join(root, `${name}.pem`), join(root, `${name}.key`)];
    const names = ['-subj', `/CN=${name}`, '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    execFileSync('openssl', ['req', '-x509', ...names, '-keyout', key, '-out', certificate, ...dates], {
      stdio: 'pipe',
    });
    chmodSync(key, 0o600);
    return { certificate_file: certificate, key_file: key };
  };

  test('that lasts is fine; one that ends soon is a warning', async () => {
    expect(await check('certificate', configOf({ tls: make('long', '-days', '90') }))).toMatchObject({ status: 'ok' });
    const soon = await check('certificate', configOf({ tls: make('soon', '-days', '9') }));
    expect(soon).toMatchObject({ status: 'warning', advice: expect.stringContaining('expires in') });
  });

  test('whose key does not match, or is readable by others, is a problem', async () => {
    const [one, two] = [make('one', '-days', '90'), make('two', '-days', '90')];
    const mixed = { certificate_file: one.certificate_file, key_file: two.key_file };
    expect((await check('private_key', configOf({ tls: mixed }))).status).toBe('problem');
    expect((await check('private_key', configOf({ tls: one }))).status).toBe('ok');
    chmodSync(one.key_file, 0o644);
    expect((await check('private_key', configOf({ tls: one }))).status).toBe('problem');
  });

  test('for another name, or with an expired issuer in its chain, is a warning', async () => {
    const named = ['-days', '90', '-addext', 'subjectAltName=DNS:gate.test'];
    const tls = make('named', ...named);
    const warned = async (names: string[]): Promise<unknown> =>
      (await checkAll('certificate', configOf({ tls: { ...tls, names } }))).slice(1).map(({ found }) => found);
    expect(await warned(['gate.test'])).toEqual([]);
    expect(await warned(['other.test'])).toEqual([
      'the certificate is for DNS:gate.test, not for other.test (tls.names)',
    ]);
    appendFileSync(tls.certificate_file, createCertificate('issuer.test', -1).certificate);
    expect(await warned(['gate.test'])).toEqual([expect.stringMatching(/^the chain's certificate ".*" expired at /)]);
  });

  test('that has expired is a problem', async () => {
    const { key_file, certificate_file } = make('old', '-days', '90');
    const request = join(root, 'old.csr');
    execFileSync('openssl', ['req', '-new', '-key', key_file, '-subj', '/CN=old', '-out', request], { stdio: 'pipe' });
    const dates = ['-days', '-1'];
    const signed = spawnSync('openssl', [
      'x509',
      '-req',
      '-in',
      request,
      '-signkey',
      key_file,
      ...dates,
      '-out',
      certificate_file,
    ]);
    expect(signed.status).toBe(0);
    const old = await check('certificate', configOf({ tls: { certificate_file, key_file } }));
    expect(old).toMatchObject({ status: 'problem', advice: expect.stringContaining('expired') });
  });
});

describe('an index that cannot be opened', () => {
  test('is a single problem, not one of the vocabulary and the license, too', async () => {
    installLicense('2999-01-01');
    const file = installIndex();
    chmodSync(file, 0o644);
    truncateSync(file, 100);
    chmodSync(file, 0o444);
    const found = await Promise.all(['index', 'versions', 'license'].map((id) => check(id, configOf())));
    expect(found.map(({ status }) => status)).toEqual(['problem', 'skipped', 'ok']);
    expect(found[0]!.advice).toContain('pagegate refresh DROP --rebuild');
  });
});

describe('a file without a certificate', () => {
  test('is reported with what was expected, not only in the words of a library', async () => {
    const file = join(root, 'junk.pem');
    writeFileSync(file, 'junk');
    const config = configOf({ tls: { certificate_file: file, key_file: file } });
    expect((await check('certificate', config)).advice).toContain(`${file}: expected a certificate in PEM, and cannot`);
  });
});

describe('tls.ciphers that the TLS library does not take', () => {
  test('are a problem, as for the server', async () => {
    const [certificate_file, key_file] = [join(root, 'ciphers.pem'), join(root, 'ciphers.key')];
    const { certificate, key } = createCertificate('ciphers.test');
    writeFileSync(certificate_file, certificate);
    writeFileSync(key_file, key, { mode: 0o600 });
    const found = (tls: object) => check('private_key', configOf({ tls: { certificate_file, key_file, ...tls } }));
    expect(await found({})).toMatchObject({ status: 'ok' });
    expect(await found({ ciphers: 'NONSENSE' })).toMatchObject({
      status: 'problem',
      found: 'tls_unusable',
      advice: expect.stringContaining('tls.ciphers ("NONSENSE")'),
    });
  });
});

describe('the running server', () => {
  const answering = async (status: object, task: () => Promise<void>): Promise<void> => {
    const answer = async () => status;
    const handlers = { status: answer, reload: answer, restart: answer, drain: answer };
    const socket = await listenControl(statePaths(configOf()).socket, handlers);
    await task().finally(() => socket.close());
  };

  test.each([
    ['ok', { ready: true, reasons: [], warnings: [] }, undefined],
    ['warning', { ready: true, reasons: [], warnings: ['the license ends'] }, 'It reports: the license ends'],
    ['problem', { ready: false, reasons: ['no ledger', 'no index'], warnings: [] }, 'It reports: no ledger; no index'],
  ])('is %s if it reports %j', async (status, said, advice) => {
    await answering(said, async () => {
      const result = await check('server', configOf());
      expect([result.status, result.advice]).toEqual([status, advice]);
    });
  });

  test('that does not run is not a problem', async () => {
    expect(await check('server', configOf())).toMatchObject({ status: 'skipped' });
  });
});

describe('files that are read only when they are needed', () => {
  test('an invalid catalog of plans is a problem', async () => {
    mkdirSync(join(root, 'state'));
    expect(await check('plans', configOf())).toMatchObject({ status: 'ok' });
    writeFileSync(join(root, 'state/plans.json'), '{');
    expect(await check('plans', configOf())).toMatchObject({ status: 'problem', found: 'bad_plan_catalogue' });
  });

  test('a missing folder of drops is a warning', async () => {
    expect(await check('drop', configOf())).toMatchObject({ status: 'skipped' });
    const config = configOf({ refresh: { drop: join(root, 'drop') } });
    expect(await check('drop', config)).toMatchObject({ status: 'warning', advice: expect.stringContaining('ENOENT') });
    mkdirSync(join(root, 'drop'));
    expect(await check('drop', config)).toMatchObject({ status: 'ok' });
  });
});

describe('a file in place of a folder', () => {
  test.each(['log', 'run', 'console', 'index', 'ledger', 'keys', 'license'])('is a problem: %s', async (name) => {
    mkdirSync(join(root, 'state'), { mode: 0o750 });
    writeFileSync(join(root, 'state', name), '');
    const found = (await checkAll('permissions', configOf())).map((one) => one.found);
    expect(found).toContain(`${join(root, 'state', name)} is not a folder`);
  });

  test('is a single problem if it is the state directory', async () => {
    writeFileSync(join(root, 'state'), '');
    expect(await checkAll('permissions', configOf())).toMatchObject([
      { found: `${join(root, 'state')} is not a folder` },
    ]);
  });
});

describe.runIf(process.getuid?.() === 0)('a full disk', () => {
  const onTmpfs = async (
    options: string,
    skip: (condition: boolean, why: string) => void,
    task: () => Promise<void>,
  ) => {
    const state = join(root, 'state');
    mkdirSync(state);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', state]).status === 0;
    skip(!mounted, 'nothing can be mounted here');
    await task().finally(() => spawnSync('umount', [state]));
  };

  test('is a problem: a tmpfs', async ({ skip }) => {
    await onTmpfs('size=64k', skip, async () => {
      const found = await checkAll('file_systems', configOf());
      expect(found.map((one) => one.status)).toEqual(['warning', 'problem']);
      expect(found[1]!.found).toContain('is full: 0 MiB are free');
    });
  });

  test('is a problem if only its inodes are used up', async ({ skip }) => {
    await onTmpfs('size=64m,nr_inodes=20', skip, async () => {
      const found = await checkAll('file_systems', configOf());
      expect(found.map((one) => one.status)).toEqual(['warning', 'problem']);
      expect(found[1]!.found).toMatch(/can hold \d+ more files: its inodes are used up$/);
    });
  });

  test('is a problem if it is read-only', async ({ skip }) => {
    await onTmpfs('ro', skip, async () => {
      const found = (await checkAll('permissions', configOf())).map((one) => one.found);
      expect(found).toEqual([`${join(root, 'state')} is on a file system that is mounted read-only`]);
    });
  });
});
