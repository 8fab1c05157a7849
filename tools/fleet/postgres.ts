/** PostgreSQL servers on loopback for the demo, the tests and the chaos run. They use Debian's programs and a temporary folder. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf, commandOf, leaveNothing } from '../chaos/leftovers.ts';
import { freePort } from '../free-port.ts';
import { requireDebian } from '../install-debian.ts';

/** The folder in which Debian has a folder per version. */
const BASE = '/usr/lib/postgresql';
const PACKAGE = 'postgresql';
/** PostgreSQL refuses to run as root; its package creates this user. */
const USER = 'postgres';
const PASSWORD = 'pagegate-test';

/** The environment variable that names the folder of another version's programs. */
const BIN_VARIABLE = 'PAGEGATE_POSTGRES_BIN';
const PROGRAMS = ['initdb', 'pg_ctl', 'postgres', 'psql', 'pg_basebackup'];

/**
 * Returns the folder of the programs: the one that the variable names, or that of Debian's newest version, which is installed if possible.
 *
 * @throws Error that says what to do
 */
function requirePostgres(): string {
  const named = process.env[BIN_VARIABLE];
  if (named !== undefined) {
    const missing = PROGRAMS.filter((name) => !existsSync(join(named, name)));
    if (missing.length > 0) throw new Error(`${BIN_VARIABLE}: ${named} has no ${missing.join(', ')}.`);
    return named;
  }
  requireDebian(`${BASE}/*/bin/initdb`, PACKAGE);
  const versions = readdirSync(BASE).filter((name) => existsSync(join(BASE, name, 'bin/initdb')));
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]!;
  return join(BASE, newest, 'bin');
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

/** Servers that share a folder. They are stopped together. */
export class PostgresCluster {
  // Must be first: if there are no programs, no folder must be created.
  readonly #bin = requirePostgres();
  readonly folder = mkdtempSync(join(tmpdir(), 'pagegate-postgres-'));
  readonly #owner = owner();
  readonly #servers: PostgresServer[] = [];

  constructor() {
    chmodSync(this.folder, 0o755);
    if (this.#owner.uid !== undefined) chownSync(this.folder, this.#owner.uid, this.#owner.gid!);
    leaveNothing(this.folder, () => this.stop());
  }

  /** Starts a primary with an empty database `pagegate` and a user of that name. */
  async primary(settings: readonly string[] = []): Promise<PostgresServer> {
    const server = new PostgresServer(this, join(this.folder, `data-${this.#servers.length}`), await freePort());
    const file = join(this.folder, 'password');
    writeFileSync(file, PASSWORD, { mode: 0o644 });
    await this.run('initdb', [
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
    this.#servers.push(server);
    await server.start();
    await server.sql('CREATE DATABASE pagegate', 'postgres');
    return server;
  }

  /**
   * Starts a standby that follows a primary.
   *
   * @param primaryPort the port at which it reaches the primary; another one than the primary's if a relay is used.
   */
  async standby(primary: PostgresServer, primaryPort = primary.port): Promise<PostgresServer> {
    const server = new PostgresServer(this, join(this.folder, `data-${this.#servers.length}`), await freePort());
    this.#servers.push(server);
    await server.follow(primary, primaryPort);
    return server;
  }

  /** Runs one of the programs as the servers' user and returns its output. @throws Error with its error output */
  async run(program: string, args: readonly string[]): Promise<string> {
    // A server that it starts writes to its own log, and so does not keep these pipes open.
    const child = spawn(join(this.#bin, program), args, { ...this.#options(), stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${err || out || `exit code ${code}`}`);
    return out;
  }

  /** Runs one of the programs synchronously, for the cleanup at exit. */
  runNow(program: string, args: readonly string[]): void {
    spawnSync(join(this.#bin, program), args, { ...this.#options(), stdio: 'ignore' });
  }

  #options() {
    const env = { ...process.env, PGPASSWORD: PASSWORD, LC_ALL: 'C.UTF-8' };
    return { cwd: this.folder, env, ...this.#owner };
  }

  /** Stops all servers and removes their data. */
  stop(): void {
    for (const server of this.#servers.splice(0)) server.stopNow();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One PostgreSQL server of a cluster. */
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
      "unix_socket_directories = ''",
      'shared_buffers = 32MB',
      // Keeps shared memory in the data folder, so that a server that is killed leaves nothing elsewhere.
      'dynamic_shared_memory_type = mmap',
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

  /** Copies all data of a primary, and follows it from now on. */
  async follow(primary: PostgresServer, primaryPort: number): Promise<void> {
    rmSync(this.data, { recursive: true, force: true });
    const url = (port: number): string =>
      `host=127.0.0.1 port=${port} user=pagegate password=${PASSWORD} application_name=standby`;
    const args = ['-D', this.data, '-d', url(primary.port), '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
    await this.#cluster.run('pg_basebackup', args);
    this.configure([`primary_conninfo = '${url(primaryPort)}'`, 'wal_retrieve_retry_interval = 200', 'fsync = off']);
    await this.start();
  }

  async start(): Promise<void> {
    const log = join(this.data, 'log');
    await this.#control('-l', log, 'start').catch((error) => {
      throw new Error(`${(error as Error).message}\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    });
    this.#isRunning = true;
  }

  /** Stops without a shutdown, as in a crash. */
  async crash(): Promise<void> {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    await this.#control('-m', 'immediate', 'stop');
  }

  /** Kills all its processes, as the kernel may do when it is out of memory. */
  async kill(): Promise<void> {
    // The lines of the file: process id, folder, time, port, socket folder, address, key and id of its segment of shared memory.
    const lines = readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number(lines[0]);
    if (!(pid > 0)) throw new Error(`${this.data}: no process to kill`);
    // Stop it first, so that it cannot start another process, which would keep its memory.
    process.kill(pid, 'SIGSTOP');
    const pids = [pid, ...childrenOf(pid)];
    for (const one of pids) {
      try {
        process.kill(one, 'SIGKILL');
      } catch {
        // The process has ended with its parent.
      }
    }
    while (pids.some((one) => commandOf(one) !== '')) await sleep(5);
    // A killed server leaves its shared memory segment for the next start, which may never come.
    const segment = lines[6]?.trim().split(/\s+/)[1];
    if (segment !== undefined) spawnSync('ipcrm', ['-m', segment], { stdio: 'ignore' });
    // Remove the file: if the process is still listed, as a zombie, the next start would assume that it uses the data.
    rmSync(join(this.data, 'postmaster.pid'), { force: true });
    this.#isRunning = false;
  }

  stopNow(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#cluster.runNow('pg_ctl', ['-D', this.data, '-w', '-t', '60', '-s', '-m', 'immediate', 'stop']);
  }

  async promote(): Promise<void> {
    await this.#control('promote');
  }

  async #control(...words: string[]): Promise<void> {
    await this.#cluster.run('pg_ctl', ['-D', this.data, '-w', '-t', '60', '-s', ...words]);
  }

  /** Runs statements and returns the rows, fields separated by `|`. */
  async sql(text: string, database = 'pagegate'): Promise<string> {
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
    return (await this.#cluster.run('psql', args)).trim();
  }
}
