/** PostgreSQL servers on loopback for the demo, the tests and the chaos run: Debian's programs, in a temporary folder. */
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';

/** Debian keeps the programs of each version apart. */
const BASE = '/usr/lib/postgresql';
const PACKAGE = 'postgresql';
/** PostgreSQL refuses to run as root; its package makes this user. */
const USER = 'postgres';
const PASSWORD = 'pagegate-test';

/** The folder of the newest programs; undefined where there are none. */
function postgresPrograms(): string | undefined {
  const versions = existsSync(BASE)
    ? readdirSync(BASE).filter((name) => existsSync(join(BASE, name, 'bin/initdb')))
    : [];
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(BASE, newest, 'bin');
}

/** Installs Debian's package where that is possible. @throws Error that says what to do otherwise */
function requirePostgres(): string {
  const found = postgresPrograms();
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0) throw new Error(`PostgreSQL is needed: sudo apt-get install ${PACKAGE}`);
  execFileSync('apt-get', ['install', '-y', '-q', PACKAGE], {
    stdio: 'inherit',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  const installed = postgresPrograms();
  if (installed === undefined) throw new Error(`The package ${PACKAGE} has no programs in ${BASE}.`);
  return installed;
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

function owner(): Owner {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, USER], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Servers that share a folder; all are ended with it. */
export class PostgresCluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'pagegate-postgres-'));
  readonly #bin = requirePostgres();
  readonly #owner = owner();
  readonly #servers: PostgresServer[] = [];

  constructor() {
    chmodSync(this.folder, 0o755);
    if (this.#owner.uid !== undefined) chownSync(this.folder, this.#owner.uid, this.#owner.gid!);
  }

  /** A primary with an empty database `pagegate` and a user of that name. */
  async primary(settings: readonly string[] = []): Promise<PostgresServer> {
    const server = new PostgresServer(this, join(this.folder, `data-${this.#servers.length}`), await freePort());
    const file = join(this.folder, 'password');
    writeFileSync(file, PASSWORD, { mode: 0o644 });
    this.run('initdb', [
      '-D',
      server.data,
      '-U',
      'pagegate',
      '-A',
      'scram-sha-256',
      `--pwfile=${file}`,
      '-E',
      'UTF8',
      '--no-sync',
    ]);
    server.allowReplication();
    server.configure(['wal_level = replica', 'max_wal_senders = 8', ...settings]);
    server.start();
    this.#servers.push(server);
    server.sql('CREATE DATABASE pagegate', 'postgres');
    return server;
  }

  /** A standby that follows a primary. */
  async standby(primary: PostgresServer, name = 'standby1'): Promise<PostgresServer> {
    const server = new PostgresServer(this, join(this.folder, `data-${this.#servers.length}`), await freePort());
    const url = `host=127.0.0.1 port=${primary.port} user=pagegate password=${PASSWORD} application_name=${name}`;
    this.run('pg_basebackup', ['-D', server.data, '-d', url, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
    server.configure([`primary_conninfo = '${url}'`]);
    server.start();
    this.#servers.push(server);
    return server;
  }

  /** Runs one of the programs as the user that may. @throws Error with what it said */
  run(program: string, args: readonly string[], input?: string): string {
    const result: SpawnSyncReturns<string> = spawnSync(join(this.#bin, program), args, {
      cwd: this.folder,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', PGPASSWORD: PASSWORD, LC_ALL: 'C.UTF-8' },
      ...(input === undefined ? {} : { input }),
      ...this.#owner,
    });
    if (result.status !== 0) throw new Error(`${program}: ${result.stderr || result.stdout || result.error?.message}`);
    return result.stdout;
  }

  /** Makes a folder as the user that the servers run as. */
  makeFolder(path: string): void {
    mkdirSync(path, { mode: 0o700 });
    if (this.#owner.uid !== undefined) chownSync(path, this.#owner.uid, this.#owner.gid!);
  }

  /** Ends all servers and removes their data. */
  stop(): void {
    for (const server of this.#servers) server.stop('immediate');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One server. */
export class PostgresServer {
  readonly data: string;
  readonly port: number;
  readonly password = PASSWORD;
  readonly #cluster: PostgresCluster;
  #isRunning = false;

  constructor(cluster: PostgresCluster, data: string, port: number) {
    this.#cluster = cluster;
    this.data = data;
    this.port = port;
  }

  get url(): string {
    return `postgres://pagegate@127.0.0.1:${this.port}/pagegate`;
  }

  configure(lines: readonly string[]): void {
    const settings = [
      "listen_addresses = '127.0.0.1'",
      `port = ${this.port}`,
      `unix_socket_directories = '${this.#cluster.folder}'`,
      'shared_buffers = 32MB',
      ...lines,
    ];
    writeFileSync(join(this.data, 'postgresql.auto.conf'), `${settings.join('\n')}\n`);
  }

  allowReplication(): void {
    const lines = [
      'local all all scram-sha-256',
      'host all all 127.0.0.1/32 scram-sha-256',
      'host replication all 127.0.0.1/32 scram-sha-256',
    ];
    writeFileSync(join(this.data, 'pg_hba.conf'), `${lines.join('\n')}\n`);
  }

  start(): void {
    this.#cluster.run('pg_ctl', ['-D', this.data, '-w', '-t', '60', '-s', '-l', join(this.data, 'log'), 'start']);
    this.#isRunning = true;
  }

  /** `immediate` is a crash. */
  stop(mode: 'fast' | 'immediate'): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#cluster.run('pg_ctl', ['-D', this.data, '-w', '-t', '60', '-s', '-m', mode, 'stop']);
  }

  promote(): void {
    this.#cluster.run('pg_ctl', ['-D', this.data, '-w', '-t', '60', '-s', 'promote']);
  }

  /** Runs statements and returns the rows, fields separated by `|`. */
  sql(text: string, database = 'pagegate'): string {
    const args = [
      '-h',
      '127.0.0.1',
      '-p',
      String(this.port),
      '-U',
      'pagegate',
      '-d',
      database,
      '-XAtq',
      '-v',
      'ON_ERROR_STOP=1',
      '-c',
      text,
    ];
    return this.#cluster.run('psql', args).trim();
  }
}
