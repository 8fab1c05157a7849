import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { unreadVariables } from '../../src/config/environment.ts';
import { statePaths } from '../../src/config/paths.ts';
import { type Setting, settings, typesOfSetting } from '../../src/config/schema.ts';
import { readTrustedKeys } from '../../src/config/trusted-keys.ts';
import { PagegateError } from '../../src/errors.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';

const dir = mkdtempSync(join(tmpdir(), 'pagegate-config-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function file(content: unknown): string {
  const path = join(dir, `${Math.random()}.json`);
  const isText = typeof content === 'string' || content instanceof Uint8Array;
  writeFileSync(path, isText ? content : JSON.stringify(content));
  return path;
}

function failure(run: () => unknown): PagegateError {
  try {
    run();
  } catch (error) {
    if (error instanceof PagegateError) return error;
    throw error;
  }
  throw new Error('It did not fail.');
}

describe('the order of the sources', () => {
  const path = file({ server: { port: 1001, host: '127.0.0.2', workers: 3 } });

  it('uses defaults without any source', () => {
    const config = loadConfig({ env: {}, cwd: dir });
    expect(config.server).toEqual({
      host: '127.0.0.1',
      port: 8080,
      workers: 1,
      plain_http_anywhere: false,
      max_connections: 10_000,
      max_unanswered_per_address: 64,
      idle_seconds: 10,
      keep_alive_seconds: 30,
      poll_seconds: 2,
      drain_seconds: 10,
    });
    expect(config.state_dir).toBe(join(dir, 'var'));
    expect(config.burst.limit).toBe(240);
  });

  it('prefers the file to the defaults, the environment to the file, and flags to the environment', () => {
    const config = loadConfig({
      file: path,
      env: { PAGEGATE_SERVER_PORT: '1002', PAGEGATE_SERVER_WORKERS: 'auto' },
      flags: { server: { port: 1003 } },
    });
    expect(config.server).toMatchObject({ host: '127.0.0.2', port: 1003, workers: 'auto' });
    expect(loadConfig({ file: path, env: { PAGEGATE_SERVER_PORT: '1002' } }).server.port).toBe(1002);
    expect(loadConfig({ file: path, env: {} }).server.port).toBe(1001);
  });

  it('uses the file named by PAGEGATE_CONFIG, unless a flag names one', () => {
    expect(loadConfig({ env: { PAGEGATE_CONFIG: path } }).server.port).toBe(1001);
    expect(loadConfig({ file: file({}), env: { PAGEGATE_CONFIG: path } }).server.port).toBe(8080);
  });

  it('resolves relative paths of a file from the file, others from the working directory', () => {
    const config = loadConfig({
      file: file({ policy: { file: 'own.json' } }),
      env: { PAGEGATE_INDEX_PATH: 'x.pgx' },
      cwd: '/srv',
    });
    expect(config.policy.file).toBe(join(dir, 'own.json'));
    expect(config.index.path).toBe('/srv/x.pgx');
    expect(statePaths(config).indexFile).toBe('/srv/x.pgx');
    const all = loadConfig({
      env: {},
      file: file({
        state_dir: 'state',
        tls: { certificate_file: 'x', key_file: 'x' },
        ledger: { password_file: 'x', ca_file: 'x' },
        refresh: { drop: 'x' },
        admin: { socket: 'x' },
        decision_log: { dir: 'x' },
      }),
    });
    const { tls, ledger, refresh, admin, decision_log } = all;
    const paths = [tls.certificate_file, tls.key_file, ledger.password_file, ledger.ca_file];
    expect([...paths, refresh.drop, admin.socket, decision_log.dir]).toEqual(Array(7).fill(join(dir, 'x')));
    expect(all.state_dir).toBe(join(dir, 'state'));
  });

  it('uses different files for the ledger of a host and the copy of a fleet', () => {
    const fileOf = (url: string | null): string =>
      statePaths(loadConfig({ env: {}, cwd: '/srv', flags: { ledger: { url } } })).ledgerFile;
    expect(fileOf(null)).toBe('/srv/var/ledger/ledger.sqlite');
    expect(fileOf('postgres://pagegate@db.example/pagegate')).toBe('/srv/var/fleet/ledger.sqlite');
  });

  it('gives a configuration that cannot be changed', () => {
    const config = loadConfig({ env: {} });
    expect(() => Object.assign(config.server, { port: 1 })).toThrow(TypeError);
  });
});

describe('environment variables', () => {
  it.each([
    ['PAGEGATE_BURST_EXEMPT', '10.0.0.0/8, ::1', ['burst', 'exempt'], ['10.0.0.0/8', '::1']],
    ['PAGEGATE_BURST_EXEMPT', '', ['burst', 'exempt'], []],
    ['PAGEGATE_ADMIN_ENABLED', 'false', ['admin', 'enabled'], false],
    ['PAGEGATE_SERVER_POLL_SECONDS', '0.5', ['server', 'poll_seconds'], 0.5],
    ['PAGEGATE_POLICY_FILE', '', ['policy', 'file'], null],
    ['PAGEGATE_LICENSE_TRUSTED_KEYS', '{"a":"/k.pem"}', ['license', 'trusted_keys'], { a: '/k.pem' }],
  ])('%s=%s', (name, text, [section, setting], expected) => {
    const config = loadConfig({ env: { [name]: text } }) as unknown as Record<string, Record<string, unknown>>;
    expect(config[section!]![setting!]).toEqual(expected);
  });

  it('an address is checked from every source', () => {
    const { message } = failure(() => loadConfig({ env: { PAGEGATE_BURST_EXEMPT: '10.0.0.0/33' } }));
    expect(message).toMatch(/the environment: PAGEGATE_BURST_EXEMPT \(burst\.exempt\) has "10\.0\.0\.0\/33"/);
    expect(failure(() => loadConfig({ env: {}, flags: { burst: { exempt: ['x'] } } })).message).toContain(
      'the command line',
    );
  });

  it.each([
    ['abc', 'got "abc"'],
    ['', 'got ""'],
    ['70000', 'got 70000'],
  ])('an invalid value is reported with the name of its variable: %j', (text, got) => {
    const { message } = failure(() => loadConfig({ env: { PAGEGATE_SERVER_PORT: text } }));
    expect(message).toContain(`PAGEGATE_SERVER_PORT (server.port): expected integer, 0 to 65,535, ${got}.`);
  });

  it('a name that starts like a setting but is not one is refused', () => {
    expect(failure(() => loadConfig({ env: { PAGEGATE_SERVER_PROT: '1' } })).message).toContain(
      'PAGEGATE_SERVER_PROT, which is not a setting (did you mean "PAGEGATE_SERVER_PORT"?)',
    );
    expect(loadConfig({ env: { PAGEGATE_SOMETHING_ELSE: '1' } }).server.port).toBe(8080);
    // This one is not a setting, but is read.
    expect(loadConfig({ env: { PAGEGATE_LEDGER_PASSWORD: 'secret' } }).server.port).toBe(8080);
  });

  it('a name that nothing reads is reported', () => {
    const env = { PAGEGATE_STATEDIR: 'x', PAGEGATE_STATE_DIR: 'x', PAGEGATE_CONFIG: 'x', PATH: 'x', PAGEGATE_A: '' };
    expect(unreadVariables(env)).toEqual(['PAGEGATE_A', 'PAGEGATE_STATEDIR']);
  });
});

it.each(['/', '/gate/', '/a/b/', '/.a/', '/a./', '/..a/', '/.../', '/a..b/'])(
  'the base path %s is accepted',
  (base_path) => {
    expect(loadConfig({ env: {}, flags: { console: { base_path } } }).console.base_path).toBe(base_path);
  },
);

describe('is refused, with the place of the error', () => {
  it.each<[string, unknown, RegExp]>([
    ['an unknown section', { sever: {} }, /the top level has no setting "sever" \(did you mean "server"\?\)/],
    ['an unknown setting', { server: { prot: 1 } }, /server has no setting "prot" \(did you mean "port"\?\)/],
    ['a port out of range', { server: { port: 65_536 } }, /server\.port: expected integer, 0 to 65,535, got 65536\.$/],
    [
      'a text instead of a number',
      { server: { port: '80' } },
      /server\.port: expected integer, 0 to 65,535, got "80"\.$/,
    ],
    [
      'a value of none of its types, reported once',
      { server: { workers: 'many' } },
      /: server\.workers: expected integer, 1 to 256 or auto, got "many"\.$/,
    ],
    ['an empty text', { state_dir: '' }, /: state_dir: expected a text that is not empty, got ""\.$/],
    ['a text instead of a list', { burst: { exempt: '10.0.0.0/8' } }, /burst\.exempt: expected array, got "10\.0/],
    [
      'a number in a map of texts',
      { license: { trusted_keys: { v: 1 } } },
      /license\.trusted_keys\.v: expected string, got 1\.$/,
    ],
    [
      'a text of another form',
      { console: { base_path: 'x' } },
      /console\.base_path: expected a text of the form \^\/.*, such as "\/pagegate\/", got "x"\.$/,
    ],
    ...['/a/../', '/../', '/./', '/a/./b/', '//', '/a//b/', '/%2e%2e/', '/a?b/', '/a/?b', '/a#b/', '/a\\b/', '/a'].map(
      (base_path): [string, unknown, RegExp] => [
        `the base path ${base_path}, which browsers or proxies would change`,
        { console: { base_path } },
        /console\.base_path: expected a text of the form .*, such as "\/pagegate\/", got "/,
      ],
    ),
    [
      'a value that is not offered',
      { policy: { profile: 'lax' } },
      /policy\.profile: expected strict, default, open, null, got "lax"/,
    ],
    [
      'a certificate without its key',
      { tls: { certificate_file: 'a.pem' } },
      /tls\.certificate_file and tls\.key_file/,
    ],
    [
      'every invalid address',
      { burst: { exempt: ['10.0.0.0/8', '1.2.3'], trusted_proxies: ['foo', '::/129'] } },
      /burst\.exempt has "1\.2\.3".*burst\.trusted_proxies has "foo".*"::\/129"/,
    ],
    [
      'a setting that is set twice, even in two sections of the same name',
      '{"server":{"port":1,"p\\u006frt":2},"burst":{"exempt":[]},"server":{},"tls":{"key_file":"a:{\\"","ciphers":null}}',
      /server\.port is set more than once \(line 1\); server is set more than once \(line 1\)\.$/,
    ],
    ['no JSON', '{', /is not valid JSON: line 1, column 2: expected "," or "}"/],
    ['a list', [], /is not a JSON object/],
  ])('%s', (_, content, expected) => {
    const error = failure(() => loadConfig({ file: file(content), env: {} }));
    expect(error.code).toBe('config_invalid');
    expect(error.message).toMatch(expected);
  });

  it('a file that does not exist', () => {
    const error = failure(() => loadConfig({ file: join(dir, 'none.json'), env: {} }));
    expect(error.code).toBe('config_unreadable');
    expect(error.message).toContain('none.json');
  });

  it('a NUL character in a value, from every source', () => {
    const keys = '{"license":{"trusted_keys":{"v":"a\\u0000b"}}}';
    const fromFile = failure(() => loadConfig({ file: file(keys), env: {} }));
    expect([fromFile.code, fromFile.message]).toEqual([
      'config_invalid',
      expect.stringContaining('license.trusted_keys has a NUL character'),
    ]);
    const fromEnv = failure(() => loadConfig({ env: { PAGEGATE_LICENSE_TRUSTED_KEYS: '{"v":"a\\u0000b"}' } }));
    expect(fromEnv.message).toContain(
      'In the environment: PAGEGATE_LICENSE_TRUSTED_KEYS (license.trusted_keys) has a NUL character',
    );
  });

  it('a file that is too large', () => {
    expect(failure(() => loadConfig({ file: file(' '.repeat(1024 * 1024 + 1)), env: {} })).code).toBe(
      'config_unreadable',
    );
  });

  const valid = '{"server":{"port":1001},"log":{"level":"warn"}}';
  it.each(HOSTILE_JSON)('a file with $name', ({ spoil, expected }) => {
    const error = failure(() => loadConfig({ file: file(spoil(valid)), env: {} }));
    expect(error.code).toBe('config_invalid');
    expect(error.message).toMatch(expected);
  });

  it.each(HARMLESS_JSON)('not a file with $name', ({ spoil }) => {
    expect(loadConfig({ file: file(spoil(valid)), env: {} })).toMatchObject(JSON.parse(valid));
  });

  it('a map in the environment with a repeated name', () => {
    const error = failure(() => loadConfig({ env: { PAGEGATE_REFRESH_TRUSTED_KEYS: '{"v":"a.pem","v":"b.pem"}' } }));
    expect(error.message).toMatch(/PAGEGATE_REFRESH_TRUSTED_KEYS is not valid JSON: v is set more than once/);
  });

  it('a flag, reported as from the command line', () => {
    expect(failure(() => loadConfig({ env: {}, flags: { server: { port: 'x' } } })).message).toContain(
      'the command line',
    );
  });
});

describe('trusted keys', () => {
  const pem = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n';

  it('may be inline text or files, with paths relative to the configuration file', () => {
    writeFileSync(join(dir, 'key.pem'), pem);
    const config = loadConfig({ file: file({ license: { trusted_keys: { a: pem, b: 'key.pem' } } }), env: {} });
    expect(readTrustedKeys(config.license.trusted_keys)).toEqual({ a: pem, b: pem });
  });

  it('are reported if a file does not exist', () => {
    expect(failure(() => readTrustedKeys({ a: join(dir, 'gone.pem') })).message).toContain('gone.pem');
  });
});

describe('docs/configuration.md', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const rows = new Map(
    page
      .split('\n')
      .filter((line) => line.startsWith('| `') && line.split(' | ').length === 5)
      .map((line) => {
        const [name, values, fallback, env, meaning] = line.slice(2, -2).split(' | ');
        return [name!.replaceAll('`', ''), { values, fallback, env, meaning }];
      }),
  );

  it('has a row for each setting and no others', () => {
    expect([...rows.keys()]).toEqual(settings.map((setting) => setting.name));
  });

  it.each(settings.map((setting): [string, Setting] => [setting.name, setting]))(
    '%s: default, environment, meaning and values match the schema',
    (name, { schema, env }) => {
      const row = rows.get(name)!;
      expect(row.fallback).toBe(`\`${JSON.stringify(schema.default)}\``);
      expect(row.env).toBe(`\`${env}\``);
      expect(row.meaning).toBe(schema.description);
      for (const value of schema.enum ??
        typesOfSetting(schema).filter((type) => type !== 'string' || schema.anyOf === undefined)) {
        expect(row.values).toContain(String(value));
      }
    },
  );
});
