/** A node of a fleet in the test process: its copy of the ledger, the ledger writer's work, and a worker's meter. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { countersPaths } from '../../src/ledger/counters/location.ts';
import { ensureOwnCopy, FleetCopy, setCopyAside } from '../../src/ledger/fleet/account-copy.ts';
import { HeldGrants } from '../../src/ledger/fleet/held-grants.ts';
import { NodeSession } from '../../src/ledger/fleet/node-session.ts';
import { Meter } from '../../src/ledger/meter.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import { readIdentity } from '../../src/ledger/store/identity.ts';
import { Reserver } from '../../src/ledger/writer/reserver.ts';
import { chargeOnce, type Outcome } from '../ledger/support.ts';

const TICK_MS = 20;
/** Generous timeout: a disk or machine that stalls for seconds is not a defect. */
const PATIENCE_MS = 60_000;
/** Longer than the engine takes an earlier session to live: what is used is told in the end, whenever the engine can be reached. */
const LEAVE_MS = 10_000;

export interface NodeOptions {
  readonly connect: () => Promise<Engine>;
  readonly maxStalenessSeconds?: number;
  readonly timeoutMs?: number;
}

export class TestNode {
  readonly name: string;
  readonly folder: string;
  readonly file: string;
  grants!: HeldGrants;
  reserver!: Reserver;
  session!: NodeSession;
  meter!: Meter;
  /** The reason why its session was taken over; undefined if it was not. */
  fenced: string | undefined;
  /** Number of answers that clients have received. */
  served = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #options: NodeOptions;
  readonly #counters = new Set<string>();

  constructor(name: string, options: NodeOptions) {
    this.name = name;
    this.#options = options;
    this.folder = mkdtempSync(join(tmpdir(), 'pagegate-node-'));
    this.file = join(this.folder, 'fleet', 'ledger.sqlite');
  }

  async start(): Promise<void> {
    const { connect, maxStalenessSeconds = 60, timeoutMs = PATIENCE_MS } = this.#options;
    this.fenced = undefined;
    ensureOwnCopy(this.file, Date.now());
    const grants = new HeldGrants(this.file, maxStalenessSeconds);
    this.grants = grants;
    this.reserver = new Reserver({
      file: this.file,
      now: grants.now,
      allowance: grants.allowance,
      fleet: grants.link,
    });
    if (!this.reserver.open()) throw new Error(this.reserver.state.reason);
    const counters = countersPaths(this.file, readIdentity(this.file)?.ledgerId ?? '')[0];
    if (counters !== undefined) this.#counters.add(counters);
    this.session = new NodeSession(grants, {
      copy: new FleetCopy(this.file),
      reserver: this.reserver,
      connect,
      nodeName: this.name,
      maxStalenessSeconds,
      onFenced: ({ message }) => {
        this.fenced = message;
        this.reserver.forfeit();
        setCopyAside(this.file, Date.now());
      },
    });
    const { session, reserver } = this;
    this.meter = new Meter({
      file: this.file,
      timeoutMs,
      connect: (_file, events) => {
        setImmediate(() => events.onConnect());
        return { ask: (ids) => void session.reserve(new Set(ids)).then(() => events.onAnswer()), close: () => {} };
      },
    });
    session.start();
    this.#timer = setInterval(() => {
      if (this.fenced === undefined) reserver.tick();
    }, TICK_MS);
  }

  /** Returns the account of a key, once the node knows it. */
  async account(key: string) {
    for (;;) {
      try {
        const found = this.meter.authenticate(key);
        if (found.kind === 'account') return found.account;
      } catch {
        // Not known yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async charge(key: string): Promise<Outcome> {
    const outcome = await chargeOnce(this.meter, await this.account(key));
    if (typeof outcome === 'number') this.served += 1;
    // A refusal returns at once. A client that retries must let this process handle the engine's answers meanwhile.
    else await nextTurn();
    return outcome;
  }

  /** Stops as a server does on SIGTERM. */
  async stop({ limitMs = LEAVE_MS } = {}): Promise<void> {
    clearInterval(this.#timer);
    await this.meter.close();
    const standing = this.reserver.standing('all');
    if (this.fenced === undefined && this.reserver.close()) await this.session.leave({ standing, limitMs });
    else await this.session.leave({ limitMs });
  }

  /** Ends like killed processes. With `power`, the shared memory is lost, too. */
  async crash({ power = false } = {}): Promise<void> {
    clearInterval(this.#timer);
    await this.meter.close();
    this.reserver.abandon();
    await this.session.kill();
    if (power) for (const path of this.#counters) rmSync(path, { force: true });
  }

  remove(): void {
    for (const path of this.#counters) rmSync(path, { force: true });
    rmSync(this.folder, { recursive: true, force: true });
  }
}
