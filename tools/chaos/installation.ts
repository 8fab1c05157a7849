/** A real server in a temporary directory, and clients that count what they read, for runs that break things on purpose. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ledger, openLedger } from '../../src/ledger/ledger.ts';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { type EntryInput, writeIndex } from '../../test/support/index-file.ts';
import { freePort } from '../free-port.ts';
import { childrenOf, commandOf, leaveNothing } from './leftovers.ts';
import { ServerProcess, START_DEADLINE_MS } from './server-process.ts';

/** No answer may take longer, and no client goes on for longer without a connection. */
const ANSWER_DEADLINE_MS = 30_000;

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

export class Installation {
  readonly dir: string;
  readonly ledger: Ledger;
  port = 0;
  readonly #options: InstallationOptions;
  #server: ServerProcess | undefined;

  constructor(options: InstallationOptions) {
    this.#options = options;
    this.dir = mkdtempSync(join(tmpdir(), 'pagegate-chaos-'));
    leaveNothing(this.dir);
    const vendor = createLicenseKey();
    const terms = {
      licensee: 'Chaos',
      dataset: 'chaos',
      entitlement: { kind: 'refreshes_until', until: '2099-01-01' },
    } as const;
    mkdirSync(join(this.dir, 'license'));
    writeFileSync(join(this.dir, 'license/license.json'), issueLicense(terms, vendor.privateKey, 'vendor'));
    writeFileSync(
      this.#configFile,
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

  get #configFile(): string {
    return join(this.dir, 'config.json');
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
    const { workers, durability } = this.#options;
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      this.#server = new ServerProcess(this.#configFile, { port: this.port, workers }, ['--durability', durability]);
      try {
        return await this.#server.listening();
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
    }
  }

  /** Waits until all workers and the keeper are there and charges are possible again. */
  async recovered(key: string): Promise<void> {
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      if (this.keeper !== 0 && this.workers.length === this.#options.workers) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => askOnce(this.port, key).catch(() => 0)));
        if (answers.every((status) => status === 200)) return;
      }
      if (Date.now() > deadline) throw new Error(`The server did not recover:\n${this.#server?.log}`);
      await sleep(20);
    }
  }

  /** Waits for the end of the primary process after a signal. */
  async ended(): Promise<void> {
    await this.#server?.ended();
  }

  /** Stops the server; returns what was wrong with its end, or nothing. */
  async stop(): Promise<string> {
    return (await this.#server?.stop()) ?? '';
  }

  async remove(): Promise<void> {
    await this.stop();
    this.ledger.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

const request = (key: string): string =>
  `GET /api/check?url=site.example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;

/** One request on a connection of its own; returns the status. */
async function askOnce(port: number, key: string): Promise<number> {
  const client = new Client(port, key);
  await client.run(1);
  const [status] = client.statuses.keys();
  if (status === undefined) throw new Error('no answer');
  return status;
}

/** A connection that asks again and again, reconnects when it is cut, and keeps count. */
export class Client {
  /** Answers read whole, by status; 0 counts those that did not come in time. */
  readonly statuses = new Map<number, number>();
  /** `quota_remaining` of every 200 that was read. */
  readonly remaining: number[] = [];
  /** Requests sent whose answer never came whole. */
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

  /** Asks until stopped, or so many times; gives up where it finds no server. */
  async run(times = Number.POSITIVE_INFINITY): Promise<void> {
    let left = times;
    let askedMs = performance.now();
    while (left > 0 && !this.#isStopped) {
      const sent = await this.#connection(left);
      if (times === 1) return;
      left -= sent;
      if (sent > 0) askedMs = performance.now();
      else if (performance.now() - askedMs > ANSWER_DEADLINE_MS) return;
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
      socket.setTimeout(ANSWER_DEADLINE_MS, () => {
        this.#count(0);
        socket.destroy();
      });
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
    this.#count(status);
    if (status === 200) this.remaining.push(Number(/"quota_remaining":(\d+)/.exec(body)?.[1]));
  }

  #count(status: number): void {
    this.statuses.set(status, this.count(status) + 1);
  }
}
