/** A node of a fleet in the test's process: its copy, its ledger writer's work, and a worker's meter. */
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
/** A disk or a machine that stands still for seconds is no defect: only what never comes is. */
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
  /** Why its state is not its own any more. */
  fenced: string | undefined;
  /** What clients have read as answers. */
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

  /** The account that a key opens, when the node has heard of it. */
  async account(key: string) {
    for (;;) {
      try {
        const found = this.meter.authenticate(key);
        if (found.kind === 'account') return found.account;
      } catch {
        // Not heard yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async charge(key: string): Promise<Outcome> {
    const outcome = await chargeOnce(this.meter, await this.account(key));
    if (typeof outcome === 'number') this.served += 1;
    // A refusal comes at once, and who asks again must let this process hear the engine meanwhile.
    else await nextTurn();
    return outcome;
  }

  /** Ends as a server does that is told to. */
  async stop({ limitMs = LEAVE_MS } = {}): Promise<void> {
    clearInterval(this.#timer);
    await this.meter.close();
    const standing = this.reserver.standing('all');
    if (this.fenced === undefined && this.reserver.close()) await this.session.leave({ standing, limitMs });
    else await this.session.leave({ limitMs });
  }

  /** Ends as processes do that are killed; with `power`, the memory goes too. */
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
