/** A ledger in a temporary directory, with the ledger writer's work done in this process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Committer } from '../../src/ledger/committer.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type AccountRef, type ChargeOutcome, type Durability, type Meter, openMeter } from '../../src/ledger/meter.ts';
import type { WriterLink } from '../../src/ledger/writer-link.ts';

/** 2026-01-01T00:00:00Z, in milliseconds. */
const START_MS = Date.UTC(2026, 0, 1);
export const DAY_MS = 86_400_000;

export interface Metered {
  readonly ledger: Ledger;
  readonly key: string;
  readonly committer: Committer;
  readonly meter: Meter;
}

export class TestRoom {
  readonly dir = mkdtempSync(join(tmpdir(), 'pagegate-ledger-'));
  readonly file = join(this.dir, 'ledger', 'ledger.sqlite');
  readonly keyFile = join(this.dir, 'keys', 'ledger.key');
  nowMs = START_MS;
  readonly now = (): number => this.nowMs;
  #closers: (() => void | Promise<void>)[] = [];

  ledger(actor = 'tester'): Ledger {
    const ledger = new Ledger({ file: this.file, keyFile: this.keyFile, actor, now: this.now });
    this.#closers.push(() => ledger.close());
    return ledger;
  }

  committer(durability: Durability = 'full'): Committer {
    const committer = new Committer({ file: this.file, durability, now: this.now, busyTimeoutMs: 20 });
    this.#closers.push(() => committer.close());
    return committer;
  }

  /** A meter whose questions are answered by this committer, later in the same process. */
  async meter(
    committer: Committer,
    options: { durability?: Durability; timeoutMs?: number; link?: TestLink } = {},
  ): Promise<Meter> {
    const link = options.link ?? new TestLink(committer);
    const meter = await openMeter({
      file: this.file,
      durability: options.durability ?? 'full',
      now: this.now,
      timeoutMs: options.timeoutMs ?? Number.POSITIVE_INFINITY,
      connect: link.connect,
    });
    this.#closers.push(() => {
      link.isCut = false;
      return meter.close();
    });
    return meter;
  }

  /** An account `acme` with so many lookups, and a meter that charges it. */
  async metered(limit: number, durability: Durability = 'full'): Promise<Metered> {
    const ledger = this.ledger();
    ledger.createAccount('acme');
    const { key } = ledger.subscribe('acme', 'custom', 'INV-1', limit).issued!;
    const committer = this.committer(durability);
    if (!committer.open()) throw new Error(committer.counters.reason);
    return { ledger, key, committer, meter: await this.meter(committer, { durability }) };
  }

  /** Closes everything that was opened here. */
  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    this.#closers = [];
  }

  async remove(): Promise<void> {
    await this.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The ledger writer's end, in this process; cut, it is a ledger writer that does not answer. */
export class TestLink {
  isCut = false;
  #isClosed = false;
  readonly #committer: Committer;

  constructor(committer: Committer) {
    this.#committer = committer;
  }

  readonly connect = (_file: string, onAnswer: () => void): WriterLink => ({
    ask: () => {
      setImmediate(() => {
        if (this.isCut || this.#isClosed) return;
        this.#committer.commit();
        onAnswer();
      });
    },
    close: () => {
      this.#isClosed = true;
    },
  });
}

/** Charges once and waits for the outcome. */
export function chargeOnce(meter: Meter, account: AccountRef): Promise<ChargeOutcome> {
  return new Promise((resolve) => meter.charge(account, resolve));
}

/** The account that a key opens. */
export function accountOf(meter: Meter, key: string): AccountRef {
  const found = meter.authenticate(key);
  if (found.kind === 'unknown') throw new Error('the key is unknown');
  return found.account;
}
