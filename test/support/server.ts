/** A real server for tests: a temporary state directory, a license, a ledger with accounts, an index, its own port, real HTTP. */

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Config, type ConfigOverrides, loadConfig } from '../../src/config/config.ts';
import { ledgerLocation, type StatePaths, statePaths } from '../../src/config/paths.ts';
import type { Metadata } from '../../src/index/write.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { createLog } from '../../src/server/log.ts';
import type { WorkerStatus } from '../../src/server/process/worker-status.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { type EntryInput, writeIndex } from './index-file.ts';
import { localWorker } from './local-worker.ts';

export interface AccountInput {
  /** A plan of the catalog. An account without a plan is not activated. */
  readonly plan?: string;
  /** Lookups per cycle, for the plan "custom". */
  readonly limit?: number;
}

export interface TestServerOptions {
  /** Without entries there is no index, and lookups get 503. */
  readonly entries?: readonly EntryInput[];
  /** Default: the account `pro` on the plan `pro`. */
  readonly accounts?: Readonly<Record<string, AccountInput>>;
  readonly config?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Number of worker processes. Default: one worker in the test process. */
  readonly workers?: number;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  /** API keys by account. */
  readonly keys: Readonly<Record<string, string>>;
  readonly config: Config;
  readonly paths: StatePaths;
  readonly server: RunningServer;
  /** Log lines so far: of the primary, and of the worker if it runs in this process. */
  readonly log: readonly string[];
  /** Sends GET `/api/check`, with the key of account `pro` unless `headers` are given. */
  check(query: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Writes another generation and makes it current, without notifying the server. */
  publish(generation: number, entries: readonly EntryInput[], metadata?: Partial<Metadata>): void;
  stop(): Promise<void>;
}

/** Fields of JSON bodies. A test reads only those that it expects in its response. */
export interface Body {
  readonly domain: string;
  readonly found: boolean;
  readonly language: string;
  readonly page_types: Readonly<Record<string, string>>;
  readonly quota_remaining: number;
  readonly verdict: string;
  readonly matched: { readonly layer: string; readonly id: string; readonly note: string };
  readonly error: string;
  readonly message: string;
  readonly activated: boolean;
  readonly workers: readonly WorkerStatus[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

const DATASET = 'test';

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dir = mkdtempSync(join(tmpdir(), 'pagegate-server-'));
  try {
    return await startIn(dir, options);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

/** The parts of a test server that exist in its state directory before a server runs. */
export type Installed = Pick<TestServer, 'config' | 'paths' | 'keys' | 'publish'>;

/** Installs license, accounts and index in a directory. */
export async function install(dir: string, options: TestServerOptions): Promise<Installed> {
  const vendor = createLicenseKey();
  const config = testConfig(dir, vendor.publicKey, options);
  const paths = statePaths(config);
  mkdirSync(dirname(paths.licenseFile), { recursive: true });
  const entitlement = { kind: 'refreshes_until', until: '2099-01-01' } as const;
  const terms = { licensee: 'Test', dataset: DATASET, entitlement };
  writeFileSync(paths.licenseFile, issueLicense(terms, vendor.privateKey, 'vendor'));
  const keys = await createAccounts(config, options.accounts ?? { pro: { plan: 'pro' } });
  const publish: TestServer['publish'] = (generation, entries, metadata) => {
    const folder = join(paths.indexDir, 'generations', String(generation));
    writeIndex(join(folder, 'index.pgx'), entries, { generation, dataset: DATASET, ...metadata });
    switchTo(paths, generation);
  };
  if (options.entries !== undefined) publish(1, options.entries);
  return { config, paths, keys, publish };
}

async function startIn(dir: string, options: TestServerOptions): Promise<TestServer> {
  const { config, paths, keys, publish } = await install(dir, options);
  const log: string[] = [];
  const serverLog = createLog('info', { write: (line) => log.push(line) });
  const startWorker = options.workers === undefined ? { startWorker: localWorker(serverLog) } : {};
  const server = await startServer(config, { log: serverLog, ...startWorker });
  const url = `http${config.tls.certificate_file === null ? '' : 's'}://127.0.0.1:${server.port}`;
  return {
    url,
    port: server.port,
    adminUrl: server.adminUrl ?? '',
    keys,
    config,
    paths,
    server,
    log,
    publish,
    check: async (query, headers = { 'x-api-key': keys['pro'] ?? '' }) =>
      read(await fetch(`${url}/api/check${query}`, { headers })),
    async stop() {
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Makes a generation current the way a refresh does: atomically. */
export function switchTo(paths: StatePaths, generation: number): void {
  const temporary = `${paths.currentLink}.new`;
  symlinkSync(`generations/${generation}`, temporary);
  renameSync(temporary, paths.currentLink);
}

/** Reads a whole response. `body` is an empty object if the text is not JSON. */
export async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: parse(text) };
}

function parse(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return {} as Body;
  }
}

function testConfig(dir: string, publicKey: string, { config = {}, workers }: TestServerOptions): Config {
  const flags: ConfigOverrides = {
    state_dir: dir,
    ...config,
    server: { port: 0, workers: workers ?? 1, drain_seconds: 5, ...config['server'] },
    admin: { port: 0, ...config['admin'] },
    // A table for few clients: every start allocates the pages of a large one.
    burst: { exempt: ['127.0.0.1'], max_clients: 1_024, ...config['burst'] },
    license: { trusted_keys: { vendor: publicKey }, ...config['license'] },
  };
  return loadConfig({ env: {}, flags });
}

async function createAccounts(
  config: Config,
  accounts: Readonly<Record<string, AccountInput>>,
): Promise<Record<string, string>> {
  const ledger = await openLedger({
    ...ledgerLocation(config),
    keyFile: statePaths(config).ledgerKeyFile,
    actor: 'test',
  });
  try {
    const keys: Record<string, string> = {};
    for (const [name, { plan, limit }] of Object.entries(accounts)) {
      await ledger.createAccount(name);
      keys[name] = (await ledger.issueKey(name)).key;
      if (plan !== undefined) await ledger.subscribe(name, plan, `PAYMENT-${name}`, limit);
    }
    return keys;
  } finally {
    await ledger.close();
  }
}
