/** A database as operators see it: faults are reported, doctor checks it, and the console shows its contents. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ledgerLocation } from '../../src/config/paths.ts';
import { PagegateError } from '../../src/errors.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { connectEngine } from '../../src/ledger/postgres/connect.ts';
import { PostgresStore } from '../../src/ledger/store/postgres-store.ts';
import { PostgresCluster, type PostgresServer } from '../../tools/fleet/postgres.ts';
import { createInstallation } from '../../tools/installation.ts';
import { startTestConsole, type TestConsole } from '../support/console.ts';
import { describeMove } from './move-suite.ts';
import { PostgresHarness } from './postgres-harness.ts';

let cluster: PostgresCluster;
let primary: PostgresServer;
let standby: PostgresServer;
beforeAll(async () => {
  cluster = new PostgresCluster();
  primary = await cluster.primary(['fsync = off']);
  standby = await cluster.standby(primary);
}, 120_000);
afterAll(() => cluster.stop());

const clear = (): Promise<string> => primary.sql('DROP SCHEMA IF EXISTS pagegate CASCADE');

describe('a database that a fleet cannot use', () => {
  beforeEach(clear);
  const urlOf = (change: { user?: string; port?: number; database?: string; query?: string }): string => {
    const { user = 'pagegate', port = primary.port, database = 'pagegate', query = '' } = change;
    return `postgres://${user}@127.0.0.1:${port}/${database}${query}`;
  };
  const cases: readonly (readonly [string, () => { url: string; password?: string; before?: string }, RegExp])[] = [
    [
      'a wrong password',
      () => ({ url: urlOf({}), password: 'no' }),
      /password authentication failed.*Check ledger.password_file/,
    ],
    ['no password', () => ({ url: urlOf({}), password: '' }), /Check ledger.password_file or PAGEGATE_LEDGER_PASSWORD/],
    ['an unknown user', () => ({ url: urlOf({ user: 'nobody' }) }), /authentication failed/],
    ['a missing database', () => ({ url: urlOf({ database: 'none' }) }), /does not exist.*Create the database/],
    ['a port without a listener', () => ({ url: urlOf({ port: 1 }) }), /ECONNREFUSED.*Check host and port/],
    ['a standby', () => ({ url: urlOf({ port: standby.port }) }), /a standby, which takes no writes. Name the primary/],
    ['a server without TLS', () => ({ url: urlOf({ query: '?sslmode=require' }) }), /does not support SSL/],
    [
      'tables of another program',
      () => ({ url: urlOf({}), before: 'CREATE SCHEMA pagegate; CREATE TABLE pagegate.orders (id int)' }),
      /holds something else \(orders\). Name another database/,
    ],
    [
      'a user that may make no schema',
      () => ({
        url: urlOf({ user: 'guest' }),
        before: "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'pagegate-test'",
      }),
      /permission denied.*right to create a schema/,
    ],
    [
      'a database that is set to read only',
      () => ({ url: urlOf({ user: 'reader' }), before: READER }),
      /read-only transaction.*default_transaction_read_only/,
    ],
  ];
  const READER = `DO $$ BEGIN CREATE ROLE reader LOGIN PASSWORD 'pagegate-test' SUPERUSER; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    ALTER ROLE reader SET default_transaction_read_only = on`;

  it.each(cases)('%s', async (_name, make, expected) => {
    const { url, password = primary.password, before } = make();
    if (before !== undefined) await primary.sql(before);
    const error = await connectEngine({ url, password })
      .then((engine) => PostgresStore.open(engine, { maxStalenessSeconds: 60 }))
      .then(
        () => undefined,
        (found: unknown) => found,
      );
    expect(error).toBeInstanceOf(PagegateError);
    expect((error as PagegateError).code).toBe('ledger_unavailable');
    expect((error as PagegateError).message).toMatch(expected);
    expect((error as PagegateError).message).not.toContain(primary.password);
  });

  it('with newer tables is refused by an older program, and left unchanged', async () => {
    const place = installationOf();
    expect((await place.pagegate('account', 'create', 'acme')).code).toBe(0);
    await primary.sql('UPDATE pagegate.ledger SET version = 99');
    const { code, json } = await place.pagegate('account', 'list');
    expect([code, json.error]).toEqual([7, 'ledger_version']);
    expect(await primary.sql('SELECT version, (SELECT count(*) FROM pagegate.accounts) FROM pagegate.ledger')).toBe(
      '99|1',
    );
    place.remove();
  });
});

function installationOf() {
  const place = createInstallation({ config: { ledger: { url: primary.url, password_file: 'password' } } });
  writeFileSync(join(place.root, 'password'), primary.password, { mode: 0o600 });
  return place;
}

describe('doctor', () => {
  beforeEach(clear);

  it('reports on the database, its replication and this node', async () => {
    const place = installationOf();
    const look = async () => {
      const { json } = await place.pagegate('doctor');
      return (json.checks ?? []).filter(({ id }) => id === 'fleet');
    };
    const text = async (): Promise<string> => JSON.stringify(await look());
    expect(await text()).toMatch(/PostgreSQL 1\d.*no tables.*no synchronous standby: a failover may forget commits/);
    await place.pagegate('account', 'create', 'acme');
    expect(await text()).toMatch(/1 accounts?.*this node has not joined yet/);
    await primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.sql('SELECT pg_reload_conf()');
    await expect.poll(text).toMatch(/commits wait for a standby/);
    await primary.sql(
      "INSERT INTO pagegate.nodes (id, name, session, created_at, seen_at) VALUES ('x', 'edge-9', 's', 0, 1); UPDATE pagegate.ledger SET learning_since = 1, history = 1",
    );
    expect(await text()).toMatch(/has lost commits and grants nothing.*no report from edge-9, with 0 lookups/);
    await primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    await primary.sql('SELECT pg_reload_conf()');
    place.remove();
  });
});

describe('the commands of a fleet', () => {
  beforeEach(clear);

  it('list the nodes as JSON, and the outcome for one of them', async () => {
    const place = installationOf();
    await place.pagegate('account', 'create', 'acme');
    await primary.sql(
      "INSERT INTO pagegate.nodes (id, name, session, created_at, seen_at) VALUES ('x', 'edge-9', 's', 0, 1), ('y', 'edge-8', '', 0, 0)",
    );
    const node = { program: '', generation: '', held: 0 };
    expect((await place.pagegate('fleet', 'status')).json).toEqual({
      nodes: [
        { id: 'y', name: 'edge-8', state: 'stopped', seen_at: null, ...node, behind: expect.any(Number) },
        {
          id: 'x',
          name: 'edge-9',
          state: 'silent',
          seen_at: '1970-01-01T00:00:01Z',
          ...node,
          behind: expect.any(Number),
        },
      ],
      stranded: [],
      learning: false,
      history: 0,
      differs: false,
    });
    const { json } = await place.pagegate('fleet', 'retire', 'edge-9', '--give-back');
    expect(json).toEqual({ id: 'x', name: 'edge-9', lookups: 0, fate: 'given_back' });
    place.remove();
  });
});

describe('the console of a node', () => {
  let console: TestConsole;
  let secret: string;
  let key = '';
  beforeAll(async () => {
    await clear();
    secret = mkdtempSync(join(tmpdir(), 'pagegate-secret-'));
    writeFileSync(join(secret, 'password'), primary.password, { mode: 0o600 });
    console = await startTestConsole(
      {
        entries: [{ domain: 'shop.example.com', language: 'en', page_types: {} }],
        accounts: {},
        config: {
          ledger: { url: primary.url, password_file: join(secret, 'password') },
          fleet: { node_name: 'edge-1' },
        },
      },
      async ({ config, paths }) => {
        const ledger = await openLedger({ ...ledgerLocation(config), keyFile: paths.ledgerKeyFile, actor: 'test' });
        for (const name of ['acme', 'idle']) await ledger.createAccount(name);
        key = (await ledger.subscribe('acme', 'pro', 'PAY-1')).issued!.key;
        await ledger.close();
      },
    );
  }, 120_000);
  afterAll(async () => {
    await console?.stop();
    rmSync(secret, { recursive: true, force: true });
  });

  it('shows accounts, usage, audit and health, and changes accounts', async () => {
    await expect
      .poll(async () => (await console.server.check('?domain=shop.example.com', { 'x-api-key': key })).status)
      .toBe(200);
    const operator = await console.signIn('operator');
    const pages = [
      '',
      'accounts',
      'accounts?q=ac',
      'accounts/acme',
      'usage.csv',
      'accounts/acme/usage.csv',
      'audit',
      'audit.csv',
      'health',
      'decisions',
      'generations',
    ];
    for (const path of pages) expect([path, (await operator.get(path)).status]).toEqual([path, 200]);
    expect((await operator.get('accounts')).text).toMatch(/acme[\s\S]*idle/);
    await expect.poll(async () => (await operator.get('health')).text.includes('PostgreSQL 1')).toBe(true);
    expect((await operator.submit('accounts', { name: 'made-here' })).status).toBeLessThan(400);
    expect((await operator.get('accounts/made-here')).text).toContain('made-here');
    const owner = await console.signInWithKey(key);
    expect((await owner.get('account')).text).toContain('acme');
  });
});

describe('over a real server,', () => {
  describeMove(PostgresHarness.start);
});
