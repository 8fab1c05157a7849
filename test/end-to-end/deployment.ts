/**
 * A whole installation in a temporary directory, set up with the commands that an operator types: vendor key, signed drop, license, refresh, serve.
 * Accounts are managed by the code of the account commands, without a process for each.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ledger } from '../../src/ledger/ledger.ts';
import { createApiKey } from '../../src/ledger/store/api-key.ts';
import { SqliteStore } from '../../src/ledger/store/sqlite-store.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { CLI, pagegate } from '../support/program.ts';
import { DROP_ENTRIES } from './fixture.ts';

const START_DEADLINE_MS = 120_000;
const STOP_DEADLINE_MS = 60_000;

export interface Deployment {
  readonly port: number;
  readonly stateDir: string;
  /** API keys of accounts on the Pro and the Business plan, and a well-formed key that matches no account. */
  readonly keys: { readonly pro: string; readonly business: string; readonly stranger: string };
  /** Creates an account without a plan and returns its key. */
  createAccount(name: string): Promise<string>;
  /** Records a paid plan. `limit` is for the custom plan; `at` is the time of payment, in milliseconds since 1970. */
  subscribe(name: string, plan: string, limit?: number, at?: number): Promise<void>;
  suspend(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  close(name: string): Promise<void>;
  /** Issues a new key. The old ones stay valid for the overlap. */
  rotateKey(name: string, overlapSeconds: number): Promise<string>;
  revokeFirstKey(name: string): Promise<void>;
  /** Runs a command of the program on this installation. Throws if it fails. */
  pagegate(...args: string[]): string;
  /** Replaces the drop by a new one. */
  deliver(revision: number, created: Date): void;
  /** Builds and activates the drop. Throws if it is refused. */
  refresh(): void;
  removeLicense(): void;
  /** Returns the end of the server's output. */
  log(): string;
  /** Stops the server and starts it again, on another `port`. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

function run(args: readonly string[], cwd: string): string {
  const result = pagegate(args, { cwd });
  if (result.status !== 0) {
    throw new Error(`pagegate ${args.join(' ')} ended with ${result.status}:\n${result.stdout}${result.stderr}`);
  }
  return result.stdout;
}

function writeDrop(folder: string, revision: number, created: Date): void {
  mkdirSync(folder, { recursive: true });
  const part = Buffer.from(DROP_ENTRIES.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  writeFileSync(join(folder, 'part-00.ndjson'), part, { mode: 0o644 });
  const manifest = {
    format: 'pagegate-drop/1',
    dataset: 'contract-test',
    revision,
    created: created.toISOString(),
    kind: 'full',
    vocabulary: { name: 'page-types', version: 1 },
    page_types: 'complete',
    notice: 'Made up for the contract test.',
    files: [
      {
        name: 'part-00.ndjson',
        bytes: part.length,
        records: DROP_ENTRIES.length,
        sha256: createHash('sha256').update(part).digest('hex'),
      },
    ],
  };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest), { mode: 0o644 });
}

export interface DeployOptions {
  readonly withIndex?: boolean;
  /** Number of worker processes. Default: 1. */
  readonly workers?: number;
  /** Further settings, by section. */
  readonly config?: Readonly<Record<string, object>>;
  /** The last day on which the license allows new data. Default: tomorrow. */
  readonly licensedUntil?: Date;
  /** Creation time of the drop. Default: now. */
  readonly dropCreated?: Date;
  /** Serves TLS with a certificate for `localhost`. */
  readonly withTls?: boolean;
}

/** Installs and starts a server. Without an index it also starts, and answers 503 until `refresh` is called. */
export async function deploy(options: DeployOptions = {}): Promise<Deployment> {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-contract-'));
  const stateDir = join(folder, 'state');
  try {
    prepare(folder, options);
    const pagegate = (...args: string[]): string => run([...args, '--config', 'pagegate.json'], folder);
    const refresh = (): void => void pagegate('refresh', 'drop');
    if (options.withIndex !== false) refresh();
    const accounts = new Accounts(stateDir);
    const pro = await accounts.create('pro');
    const business = await accounts.create('business');
    await accounts.subscribe('pro', 'pro');
    await accounts.subscribe('business', 'business');
    let running = await startServer(folder);
    return {
      get port() {
        return running.port;
      },
      stateDir,
      keys: { pro, business, stranger: createApiKey() },
      createAccount: (name) => accounts.create(name),
      subscribe: (...paid) => accounts.subscribe(...paid),
      suspend: async (name) => void (await accounts.ledger.setActive(name, false)),
      resume: async (name) => void (await accounts.ledger.setActive(name, true)),
      close: async (name) => void (await accounts.ledger.closeAccount(name)),
      rotateKey: async (name, overlapSeconds) => (await accounts.ledger.rotateKey(name, overlapSeconds)).key,
      revokeFirstKey: (name) => accounts.revokeFirst(name),
      pagegate,
      deliver: (revision, created) => deliverDrop(folder, revision, created),
      refresh,
      removeLicense: () => rmSync(join(stateDir, 'license/license.json')),
      log: () => running.output(),
      restart: async () => {
        await stopServer(running.server);
        running = await startServer(folder);
      },
      stop: async () => {
        accounts.ledger.close();
        await stopServer(running.server);
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Does the vendor's work for each delivery. */
function deliverDrop(folder: string, revision: number, created: Date): void {
  const drop = join(folder, 'drop');
  rmSync(drop, { recursive: true, force: true });
  writeDrop(drop, revision, created);
  run(['drop', 'sign', 'drop', '--key', 'vendor.private.pem'], folder);
}

/** Does the work of the vendor and of the installer. */
function prepare(folder: string, options: DeployOptions): void {
  const { workers = 1, config = {}, withTls = false, licensedUntil = new Date(Date.now() + 86_400_000) } = options;
  run(['license', 'keygen', '--out', 'vendor'], folder);
  deliverDrop(folder, 1, options.dropCreated ?? new Date());
  const trusted = { vendor: 'vendor.public.pem' };
  const settings = {
    state_dir: 'state',
    server: { port: 0, workers },
    admin: { port: 0 },
    license: { trusted_keys: trusted },
    refresh: { trusted_keys: trusted },
    ...(withTls ? { tls: installCertificate(folder) } : {}),
    ...config,
  };
  writeFileSync(join(folder, 'pagegate.json'), JSON.stringify(settings));
  const until = licensedUntil.toISOString().slice(0, 10);
  const terms = [
    '--key-name',
    'vendor',
    '--licensee',
    'Test',
    '--dataset',
    'contract-test',
    '--refreshes-until',
    until,
  ];
  writeFileSync(
    join(folder, 'license.json'),
    run(['license', 'issue', '--key', 'vendor.private.pem', ...terms], folder),
  );
  run(['license', 'install', 'license.json', '--config', 'pagegate.json'], folder);
}

function installCertificate(folder: string): { certificate_file: string; key_file: string } {
  const { certificate, key } = createCertificate('localhost');
  writeFileSync(join(folder, 'certificate.pem'), certificate);
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
  return { certificate_file: 'certificate.pem', key_file: 'key.pem' };
}

class Accounts {
  readonly ledger: Ledger;
  #nowMs: number | undefined;
  #payments = 0;

  constructor(stateDir: string) {
    const paths = { file: join(stateDir, 'ledger/ledger.sqlite'), keyFile: join(stateDir, 'keys/ledger.key') };
    const store = new SqliteStore({ ...paths, now: () => this.#nowMs ?? Date.now() });
    this.ledger = new Ledger(store, { ...paths, actor: 'test' });
  }

  async create(name: string): Promise<string> {
    await this.ledger.createAccount(name);
    return (await this.ledger.issueKey(name)).key;
  }

  async subscribe(name: string, plan: string, limit?: number, at?: number): Promise<void> {
    this.#payments += 1;
    this.#nowMs = at;
    try {
      await this.ledger.subscribe(name, plan, `PAYMENT-${this.#payments}`, limit);
    } finally {
      this.#nowMs = undefined;
    }
  }

  async revokeFirst(name: string): Promise<void> {
    const [first] = (await this.ledger.view(name)).keys;
    if (first === undefined) throw new Error(`${name} has no key`);
    await this.ledger.revokeKey(name, first.id);
  }
}

interface Running {
  readonly server: ChildProcess;
  readonly port: number;
  readonly output: () => string;
}

async function startServer(folder: string): Promise<Running> {
  const server = spawn(process.execPath, [CLI, 'serve', '--config', 'pagegate.json'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const port = await new Promise<number>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`the server ${why}:\n${output}`));
    const timer = setTimeout(() => {
      server.kill('SIGKILL');
      fail(`did not start within ${START_DEADLINE_MS} ms`);
    }, START_DEADLINE_MS);
    const read = (chunk: Buffer): void => {
      output = `${output}${chunk}`.slice(-20_000);
      const found = /serves https?:\/\/[^/]*:(\d+)\/api\/check/.exec(output)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(Number(found));
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
    server.once('exit', (code) => {
      clearTimeout(timer);
      fail(`ended with ${code}`);
    });
  });
  return { server, port, output: () => output };
}

async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) throw new Error('the server did not live to the end');
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  const late = setTimeout(() => server.kill('SIGKILL'), STOP_DEADLINE_MS);
  const code = await ended;
  clearTimeout(late);
  if (code !== 0) throw new Error(`the server ended with ${code}`);
}
