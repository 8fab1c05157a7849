/** A ledger in a temporary directory. The work of the ledger writer is done in this process. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countersPaths } from '../../src/ledger/counters/location.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type ChargeOutcome, Meter } from '../../src/ledger/meter.ts';
import type { Account } from '../../src/ledger/quota.ts';
import { readIdentity } from '../../src/ledger/store/identity.ts';
import type { Reader } from '../../src/ledger/store/records.ts';
import { SqliteStore } from '../../src/ledger/store/sqlite-store.ts';
import { Reserver } from '../../src/ledger/writer/reserver.ts';
import type { WriterLink, WriterLinkEvents } from '../../src/ledger/writer/writer-socket.ts';
import type { Database } from '../../src/platform/sqlite.ts';

/** 2026-01-01T00:00:00Z, in milliseconds. */
const START_MS = Date.UTC(2026, 0, 1);
export const DAY_MS = 86_400_000;

export interface Metered {
  readonly ledger: TestLedger;
  readonly key: string;
  readonly reserver: Reserver;
  readonly meter: Meter;
}

/** A ledger whose tables tests can read. */
export class TestLedger extends Ledger {
  declare readonly store: SqliteStore;

  get database(): Database {
    return this.store.database;
  }

  get read(): Reader {
    return this.store.read;
  }
}

export class LedgerFolder {
  readonly dir = mkdtempSync(join(tmpdir(), 'pagegate-ledger-'));
  readonly file = join(this.dir, 'ledger', 'ledger.sqlite');
  readonly keyFile = join(this.dir, 'keys', 'ledger.key');
  nowMs = START_MS;
  readonly now = (): number => this.nowMs;
  #closers: (() => void | Promise<void>)[] = [];
  readonly #counters = new Set<string>();

  ledger(actor = 'tester'): TestLedger {
    const ledger = new TestLedger(new SqliteStore({ file: this.file, now: this.now }), {
      keyFile: this.keyFile,
      actor,
    });
    this.#closers.push(() => ledger.close());
    return ledger;
  }

  reserver(): TestReserver {
    const reserver = new TestReserver({
      file: this.file,
      now: this.now,
      busyTimeoutMs: 20,
      onNewCounters: () => reserver.reconnectAll(),
    });
    this.#closers.push(() => reserver.end());
    return reserver;
  }

  /** Creates a meter whose requests this reserver answers asynchronously, in the same process. */
  async meter(reserver: TestReserver, options: { timeoutMs?: number; link?: TestLink } = {}): Promise<Meter> {
    const link = options.link ?? new TestLink(reserver);
    const meter = new Meter({
      file: this.file,
      now: this.now,
      timeoutMs: options.timeoutMs ?? 10_000,
      connect: link.connect,
    });
    this.#closers.push(() => {
      link.isCut = false;
      return meter.close();
    });
    return meter;
  }

  /** Creates an account `acme` with this many lookups, and a meter that charges it. */
  async metered(limit: number): Promise<Metered & { readonly reserver: TestReserver }> {
    const ledger = this.ledger();
    await ledger.createAccount('acme');
    const { key } = (await ledger.subscribe('acme', 'custom', 'INV-1', limit)).issued!;
    const reserver = this.reserver();
    if (!reserver.open()) throw new Error(reserver.state.reason);
    this.#noteCounters();
    return { ledger, key, reserver, meter: await this.meter(reserver) };
  }

  /** The preferred path of the shared counters, in memory. */
  get countersFile(): string {
    return countersPaths(this.file, readIdentity(this.file)?.ledgerId ?? '')[0]!;
  }

  /** Removes the shared counters, as a loss of power does. */
  loseCounters(): void {
    rmSync(this.countersFile, { force: true });
  }

  /** Closes everything opened here, as if the processes had died. */
  async close(): Promise<void> {
    this.#noteCounters();
    for (const close of this.#closers.reverse()) await close();
    this.#closers = [];
  }

  /** Notes the paths of the counters for `remove`. They are derived from the ledger's folder, which a test may remove. */
  #noteCounters(): void {
    const identity = readIdentity(this.file);
    if (identity === undefined) return;
    for (const path of countersPaths(this.file, identity.ledgerId)) this.#counters.add(path);
  }

  async remove(): Promise<void> {
    await this.close();
    for (const path of this.#counters) rmSync(path, { force: true });
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Names of the files in the ledger's folder. */
  names(): string[] {
    return readdirSync(join(this.dir, 'ledger'));
  }
}

/** A reserver that can also end as in a killed process: without giving back what it reserved. */
export class TestReserver extends Reserver {
  readonly links = new Set<TestLink>();
  #isClosed = false;

  /** Ends the connections of the workers, which connect again. */
  reconnectAll(): void {
    for (const link of this.links) link.reconnect();
  }

  override close(): boolean {
    this.#isClosed = true;
    return super.close();
  }

  end(): void {
    if (!this.#isClosed) this.abandon();
    this.#isClosed = true;
  }
}

/** A connection to the reserver in this process. If `isCut`, requests get no answer. */
export class TestLink {
  isCut = false;
  #isClosed = false;
  #events: WriterLinkEvents | undefined;
  readonly #reserver: TestReserver;

  constructor(reserver: TestReserver) {
    this.#reserver = reserver;
    reserver.links.add(this);
  }

  reconnect(): void {
    setImmediate(() => {
      if (!this.#isClosed) this.#events?.onConnect();
    });
  }

  readonly connect = (_file: string, events: WriterLinkEvents): WriterLink => {
    this.#events = events;
    this.reconnect();
    return {
      ask: (ids) => {
        setImmediate(() => {
          if (this.isCut || this.#isClosed) return;
          this.#reserver.reserve(ids);
          events.onAnswer();
        });
      },
      close: () => {
        this.#isClosed = true;
        this.#reserver.links.delete(this);
      },
    };
  };
}

/** The outcome of one lookup: the number left, or the reason for a refusal. */
export type Outcome = Exclude<ChargeOutcome, 'wait'>;

/** Charges once as a request does: waits if more lookups must be reserved first. */
export function chargeOnce(meter: Meter, account: Account): Promise<Outcome> {
  const sinceMs = performance.now();
  return new Promise((resolve) => {
    const attempt = (isReserved: boolean): void => {
      const outcome = isReserved ? meter.charge(account) : 'ledger_unavailable';
      if (outcome === 'wait') meter.wait(account, sinceMs, attempt);
      else resolve(outcome);
    };
    attempt(true);
  });
}

/** Returns the account of an API key. */
export function accountOf(meter: Meter, key: string): Account {
  const found = meter.authenticate(key);
  if (found.kind === 'unknown') throw new Error('the key is unknown');
  return found.account;
}
