/** A node of the fleet under test: the real program, with its own relay to each database server. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Account } from '../../../src/ledger/quota.ts';
import { SqliteStore } from '../../../src/ledger/store/sqlite-store.ts';
import { freePort } from '../../free-port.ts';
import { activate, createInstallation, type Installation } from '../../installation.ts';
import { removeCountersOf } from '../../remove-counters.ts';
import { childrenOf, commandOf, leaveNothing, processTree } from '../leftovers.ts';
import { keepStarting, ServerProcess } from '../server-process.ts';
import { Relay } from './relay.ts';

const run = promisify(execFile);

/** The smallest value that the configuration allows, so that a run need not wait a minute until a node counts as silent. */
export const MAX_STALENESS_SECONDS = 5;

export interface NodeOptions {
  readonly name: string;
  readonly password: string;
  /** Ports of the database servers. */
  readonly servers: readonly number[];
  /** The ledger key of another node, which all nodes share. */
  readonly keyFile?: string;
  /** Whether its clock can be set wrong, which costs processor time; true by default. */
  readonly hasOwnClock?: boolean;
}

export class ChaosNode {
  readonly name: string;
  readonly place: Installation;
  readonly port: number;
  /** Its relays to the database servers. */
  readonly lines: readonly Relay[];
  readonly #clockFile: string;
  readonly #hasOwnClock: boolean;
  #adminPort = 0;
  #server: ServerProcess | undefined;
  /** Process id of the primary process that has taken over from the one started here; 0 if none has. */
  #successor = 0;

  private constructor(name: string, place: Installation, port: number, lines: readonly Relay[], hasOwnClock = true) {
    this.name = name;
    this.place = place;
    this.port = port;
    this.lines = lines;
    this.#clockFile = join(place.root, 'clock');
    this.#hasOwnClock = hasOwnClock;
    this.clockOffsetMs = 0;
  }

  /** Creates a node with data to serve, without starting it. */
  static async create({ name, password, servers, keyFile, hasOwnClock }: NodeOptions): Promise<ChaosNode> {
    const lines = await Promise.all(servers.map((port) => Relay.open(port)));
    const hosts = lines.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const place = createInstallation({
      config: {
        ledger: { url: `postgres://pagegate@${hosts}/pagegate`, password_file: 'ledger.password' },
        fleet: { node_name: name, max_staleness_seconds: MAX_STALENESS_SECONDS },
        burst: { exempt: ['127.0.0.1'] },
        admin: { enabled: true },
      },
    });
    leaveNothing(place.root, () => removeCountersOf(place.state));
    writeFileSync(join(place.root, 'ledger.password'), password, { mode: 0o600 });
    if (keyFile !== undefined) {
      mkdirSync(join(place.state, 'keys'), { recursive: true, mode: 0o700 });
      copyFileSync(keyFile, join(place.state, 'keys/ledger.key'));
    }
    await activate(place, { revision: 1, domains: 1 });
    return new ChaosNode(name, place, await freePort(), lines, hasOwnClock);
  }

  /** Creates a node with a copy of this node's present state directory. It uses the same relays. */
  async copy(name: string): Promise<ChaosNode> {
    const root = mkdtempSync(join(tmpdir(), 'pagegate-copy-'));
    leaveNothing(root, () => removeCountersOf(join(root, 'state')));
    // Files that vanish meanwhile are missing in the copy, as in any copy of a running server.
    await run('cp', ['-a', `${this.place.root}/.`, root]).catch(() => {});
    const [state, configFile] = [join(root, 'state'), join(root, 'config.json')];
    const config = JSON.parse(readFileSync(configFile, 'utf8'));
    writeFileSync(
      configFile,
      JSON.stringify({ ...config, state_dir: state, fleet: { ...config.fleet, node_name: name } }),
    );
    const remove = (): void => {
      removeCountersOf(state);
      rmSync(root, { recursive: true, force: true });
    };
    const place = { ...this.place, root, state, configFile, store: join(state, 'index'), remove };
    return new ChaosNode(name, place, await freePort(), []);
  }

  get keyFile(): string {
    return join(this.place.state, 'keys/ledger.key');
  }

  /** Sets the offset of its clock. */
  set clockOffsetMs(ms: number) {
    writeFileSync(this.#clockFile, Buffer.from(new Float64Array([ms]).buffer));
  }

  get primary(): number {
    return this.#successor > 0 ? this.#successor : (this.#server?.pid ?? 0);
  }

  get ledgerWriter(): number {
    return childrenOf(this.primary).find((pid) => commandOf(pid).includes('writer/main')) ?? 0;
  }

  get worker(): number {
    return childrenOf(this.primary).find((pid) => commandOf(pid).includes('worker-process')) ?? 0;
  }

  /** The ids of all its processes, the primary process first. */
  get pids(): number[] {
    return this.primary === 0 ? [] : processTree(this.primary);
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.#adminPort}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  }

  /** The end of its output. */
  get log(): string {
    return this.#server?.log ?? '';
  }

  async start(): Promise<void> {
    const preload = new URL('./clock.ts', import.meta.url).href;
    const env = this.#hasOwnClock ? { NODE_OPTIONS: `--import ${preload}`, CHAOS_CLOCK: this.#clockFile } : {};
    if (this.#adminPort === 0) this.#adminPort = await freePort();
    const flags = ['--port', String(this.port), '--workers', '1', '--admin-port', String(this.#adminPort)];
    this.#successor = 0;
    await keepStarting(() => {
      this.#server = new ServerProcess(this.place.configFile, {}, flags, undefined, env);
      return this.#server;
    });
  }

  /** Kills processes, and waits until they are gone. */
  async kill(pids: readonly number[]): Promise<void> {
    for (const pid of pids) {
      if (pid > 0) process.kill(pid, 'SIGKILL');
    }
    while (pids.some((pid) => pid > 0 && commandOf(pid) !== '')) await sleep(2);
  }

  /** Stops or continues all its processes. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const pid of this.pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has ended.
      }
    }
  }

  /** Restarts it without interruption: a new server takes over. */
  async restart(): Promise<void> {
    const before = this.primary;
    const { code, json, stderr } = await this.place.pagegate('restart', '--wait', '60');
    if (code !== 0) throw new Error(`restart of ${this.name}: ${stderr}\n${this.log.slice(-3_000)}`);
    this.#successor = (json as { readonly pid?: number }).pid ?? 0;
    while (commandOf(before) !== '') await sleep(5);
  }

  /** Stops it in an orderly way. Returns a description of the problem if that failed, otherwise an empty string. */
  async stop(): Promise<string> {
    if (this.#successor === 0) return (await this.#server?.stop()) ?? '';
    process.kill(this.#successor, 'SIGTERM');
    while (commandOf(this.#successor) !== '') await sleep(5);
    return '';
  }

  /** Removes all that it knows of the fleet, as if it were a new host. It must not be running. */
  forget(): void {
    removeCountersOf(this.place.state);
    rmSync(join(this.place.state, 'fleet'), { recursive: true, force: true });
  }

  /** What it has charged to an account in the latest cycle that it knows, according to its own copy and counters. */
  async charged(account: Account): Promise<{ readonly cycle: number; readonly used: number } | undefined> {
    const file = join(this.place.state, 'fleet/ledger.sqlite');
    const store = new SqliteStore({ file, readonly: true, create: false });
    try {
      return (await store.usage([account])).get(account.id);
    } finally {
      await store.close();
    }
  }

  async remove(): Promise<void> {
    await this.kill(this.pids).catch(() => {});
    for (const line of this.lines) await line.close();
    this.place.remove();
  }
}
