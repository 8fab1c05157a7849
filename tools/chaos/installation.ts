/** A real server in a temporary directory, and clients that count what they read, for runs that break things on purpose. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ledger, openLedger } from '../../src/ledger/ledger.ts';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { type EntryInput, writeIndex } from '../../test/support/index-file.ts';
import { freePort } from '../free-port.ts';

const PROGRAM = new URL('../../src/cli.ts', import.meta.url).pathname;
const START_DEADLINE_MS = 30_000;

export interface InstallationOptions {
  readonly workers: number;
  readonly durability: 'full' | 'relaxed';
  /** Records of the index; one unless told otherwise. */
  readonly records?: number;
}

/** The domain of a record, by its number. */
export const domainOf = (i: number): string => (i === 0 ? 'site.example.com' : `site-${i}.example.com`);

const entryOf = (i: number): EntryInput => {
  const domain = domainOf(i);
  const pages = ['login', 'pricing', 'docs', 'contact', 'about', 'careers', 'blog'];
  return {
    domain,
    language: 'en',
    page_types: Object.fromEntries(pages.map((type) => [type, `https://${domain}/${type}`])),
  };
};

/** The process ids of a process's children, from the kernel. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

export class Installation {
  readonly dir: string;
  readonly ledger: Ledger;
  port = 0;
  readonly #options: InstallationOptions;
  #server: ChildProcess | undefined;
  #log = '';

  constructor(options: InstallationOptions) {
    this.#options = options;
    this.dir = mkdtempSync(join(tmpdir(), 'pagegate-chaos-'));
    const vendor = createLicenseKey();
    const terms = {
      licensee: 'Chaos',
      dataset: 'chaos',
      entitlement: { kind: 'refreshes_until', until: '2099-01-01' },
    } as const;
    mkdirSync(join(this.dir, 'license'));
    writeFileSync(join(this.dir, 'license/license.json'), issueLicense(terms, vendor.privateKey, 'vendor'));
    writeFileSync(
      join(this.dir, 'config.json'),
      JSON.stringify({
        state_dir: this.dir,
        license: { trusted_keys: { vendor: vendor.publicKey } },
        burst: { exempt: ['127.0.0.1'] },
      }),
    );
    const folder = join(this.dir, 'index/generations/1');
    mkdirSync(folder, { recursive: true });
    const entries = Array.from({ length: options.records ?? 1 }, (_, i) => entryOf(i));
    writeIndex(join(folder, 'index.pgx'), entries, { generation: 1, dataset: 'chaos' });
    symlinkSync('generations/1', join(this.dir, 'index/current'));
    this.ledger = openLedger({ file: this.ledgerFile, keyFile: join(this.dir, 'keys/ledger.key'), actor: 'chaos' });
  }

  get ledgerFile(): string {
    return join(this.dir, 'ledger/ledger.sqlite');
  }

  /** The end of what the server wrote. */
  get log(): string {
    return this.#log;
  }

  /** An account with a limit of its own; returns its key. */
  createAccount(name: string, limit: number): string {
    this.ledger.createAccount(name);
    return this.ledger.subscribe(name, 'custom', `PAY-${name}`, limit).issued!.key;
  }

  /** Charged so far, as an administrator sees it. */
  used(name: string): number {
    return this.ledger.view(name).quota.quota_used;
  }

  get primary(): number {
    return this.#server?.pid ?? 0;
  }

  get keeper(): number {
    return childrenOf(this.primary).find((pid) => commandOf(pid).includes('keeper-main')) ?? 0;
  }

  get workers(): number[] {
    return childrenOf(this.primary).filter((pid) => commandOf(pid).includes('worker-process'));
  }

  /**
   * Starts the server, and resolves when all workers listen. One that ends at once is started again, as a service manager would: after
   * the death of a primary its workers drain first, and the port is theirs until then.
   */
  async start(): Promise<void> {
    this.port = this.port === 0 ? await freePort() : this.port;
    const flags = ['--port', String(this.port), '--workers', String(this.#options.workers), '--admin-port', '0'];
    const config = ['--config', join(this.dir, 'config.json'), '--durability', this.#options.durability];
    const deadline = Date.now() + START_DEADLINE_MS;
    let server = this.#spawn(['serve', ...config, ...flags]);
    while (!this.#log.includes('"event":"listening"') || !(await this.#answers())) {
      if (Date.now() > deadline) throw new Error(`The server did not start:\n${this.#log}`);
      if (server.exitCode !== null) server = this.#spawn(['serve', ...config, ...flags]);
      await sleep(20);
    }
  }

  #spawn(args: readonly string[]): ChildProcess {
    const server = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#server = server;
    this.#log = '';
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', (text: Buffer) => {
        if (this.#server === server) this.#log = (this.#log + text.toString()).slice(-20_000);
      });
    }
    return server;
  }

  /** Waits until all workers and the keeper are there and charges are possible again. */
  async recovered(key: string): Promise<void> {
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      if (this.keeper !== 0 && this.workers.length === this.#options.workers) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => askOnce(this.port, key).catch(() => 0)));
        if (answers.every((status) => status === 200 || status === 403)) return;
      }
      if (Date.now() > deadline) throw new Error(`The server did not recover:\n${this.#log}`);
      await sleep(20);
    }
  }

  /** Waits for the end of the primary process after a signal. */
  async ended(): Promise<void> {
    const server = this.#server;
    if (server !== undefined && server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  }

  async stop(): Promise<void> {
    this.#server?.kill('SIGTERM');
    await this.ended();
  }

  async remove(): Promise<void> {
    await this.stop();
    this.ledger.close();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    try {
      return (await askOnce(this.port, 'none')) === 401;
    } catch {
      return false;
    }
  }
}

const request = (key: string): string =>
  `GET /api/check?url=site.example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;

/** One request on a connection of its own; returns the status. */
export async function askOnce(port: number, key: string): Promise<number> {
  const client = new Client(port, key);
  await client.run(1);
  if (client.unanswered > 0) throw new Error('no answer');
  return [...client.statuses.keys()][0]!;
}

/** A connection that asks again and again, reconnects when it is cut, and keeps count. */
export class Client {
  /** Answers read whole, by status. */
  readonly statuses = new Map<number, number>();
  /** `quota_remaining` of every 200 that was read. */
  readonly remaining: number[] = [];
  /** Requests sent whose answer never came. */
  unanswered = 0;
  #isStopped = false;
  readonly #port: number;
  readonly #request: string;

  constructor(port: number, key: string) {
    this.#port = port;
    this.#request = request(key);
  }

  count(status: number): number {
    return this.statuses.get(status) ?? 0;
  }

  /** Ends after the request that is under way. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Asks until stopped, or so many times. */
  async run(times = Number.POSITIVE_INFINITY): Promise<void> {
    let left = times;
    while (left > 0 && !this.#isStopped) {
      left -= await this.#connection(left);
      if (times === 1) return;
      if (left > 0 && !this.#isStopped) await sleep(10);
    }
  }

  /** One connection, until it is cut, stopped or through; returns how many requests it sent. */
  #connection(times: number): Promise<number> {
    return new Promise((resolve) => {
      let sent = 0;
      let isWaiting = false;
      let text = '';
      const socket = connect(this.#port, '127.0.0.1');
      const next = (): void => {
        if (sent >= times || this.#isStopped) {
          socket.destroy();
          return;
        }
        sent += 1;
        isWaiting = true;
        socket.write(this.#request);
      };
      socket.setNoDelay(true);
      socket.on('connect', next);
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        this.#read(Number(text.slice(9, 12)), text.slice(end + 4, end + 4 + length));
        text = '';
        isWaiting = false;
        next();
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        if (isWaiting) this.unanswered += 1;
        resolve(sent);
      });
    });
  }

  #read(status: number, body: string): void {
    this.statuses.set(status, this.count(status) + 1);
    if (status === 200) this.remaining.push(Number(/"quota_remaining":(\d+)/.exec(body)?.[1]));
  }
}
