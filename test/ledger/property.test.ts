/** Compares the ledger with a small model: random sequences of everything that can happen to an account. */
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { COUNTERS_SIZE_BYTES } from '../../src/ledger/counters/counters.ts';
import type { Meter } from '../../src/ledger/meter.ts';
import { Random } from '../../tools/random.ts';
import { SEED } from '../support/seed.ts';
import {
  chargeOnce,
  DAY_MS,
  LedgerFolder,
  type Outcome,
  type TestLedger,
  TestLink,
  type TestReserver,
} from './support.ts';

const CYCLE_MS = 30 * DAY_MS;
/** Enough for each kind of event to occur many times. `make test-ledger` runs thirty times as many. */
const STEPS = Number(process.env['LEDGER_STEPS'] ?? 2_000);

/** The latest moment seen is saved at least this often. */
const SAVED_WITHIN_MS = 60_000;

/** The expected state of an account. */
interface Model {
  name: string;
  state: 'created' | 'active' | 'suspended' | 'closed';
  anchorMs: number;
  limit: number;
  next: { limit: number; fromCycle: number } | undefined;
  cycle: number;
  used: number;
  /** The counters were lost, and what that added has not been read from the ledger yet. */
  hasLost: boolean;
  served: number;
  keys: { key: string; untilMs: number }[];
}

class World {
  readonly folder = new LedgerFolder();
  /** The test's title contains the seed. */
  readonly random: (below: number) => number;
  readonly models: Model[] = [];
  readonly seen = new Map<string, number>();
  ledger: TestLedger;
  reserver!: TestReserver;
  links: TestLink[] = [];
  meters: Meter[] = [];
  reference = 0;
  /** The latest moment that the ledger has seen. The clock of the test moves back and forth around it. */
  highMs: number;

  constructor(seed: number) {
    const random = new Random(seed);
    this.random = (below) => random.below(below);
    this.ledger = this.folder.ledger();
    this.highMs = this.folder.nowMs;
  }

  async start(): Promise<void> {
    this.reserver = this.folder.reserver();
    expect(this.reserver.open()).toBe(true);
    this.links = [new TestLink(this.reserver), new TestLink(this.reserver)];
    this.meters = [];
    for (const link of this.links) this.meters.push(await this.folder.meter(this.reserver, { link }));
  }

  count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  /** The cycle in effect: that of the clock, but never earlier than the last one with a charge. */
  current(model: Model): { cycle: number; used: number } {
    const cycle = model.limit === 0 ? 0 : Math.max(0, Math.floor((this.folder.nowMs - model.anchorMs) / CYCLE_MS));
    return cycle > model.cycle ? { cycle, used: 0 } : { cycle: model.cycle, used: model.used };
  }

  limitOf(model: Model, cycle: number = this.current(model).cycle): number {
    return model.next !== undefined && cycle >= model.next.fromCycle ? model.next.limit : model.limit;
  }

  async change(task: () => Promise<unknown>): Promise<void> {
    await task();
    this.reserver.publishChanges();
  }

  async create(): Promise<void> {
    const name = `account-${this.models.length}`;
    await this.change(() => this.ledger.createAccount(name));
    const { key } = await this.ledger.issueKey(name);
    this.reserver.publishChanges();
    this.models.push({
      name,
      state: 'created',
      anchorMs: 0,
      limit: 0,
      next: undefined,
      cycle: 0,
      used: 0,
      hasLost: false,
      served: 0,
      keys: [{ key, untilMs: Number.POSITIVE_INFINITY }],
    });
  }

  async subscribe(model: Model): Promise<void> {
    const limit = 1 + this.random(this.random(2) === 0 ? 40 : 4_000);
    this.reference += 1;
    await this.change(() => this.ledger.subscribe(model.name, 'custom', `PAY-${this.reference}`, limit));
    if (model.limit === 0) {
      Object.assign(model, { anchorMs: this.folder.nowMs, limit });
      this.count('first subscription');
    } else {
      const current = this.limitOf(model);
      model.limit = Math.max(current, limit);
      model.next = limit < current ? { limit, fromCycle: this.current(model).cycle + 1 } : undefined;
      this.count(limit < current ? 'downgrade' : 'upgrade');
    }
    model.state = 'active';
  }

  async rotate(model: Model): Promise<void> {
    const overlapSeconds = this.random(2) * 3600;
    await this.change(async () => {
      const { key } = await this.ledger.rotateKey(model.name, overlapSeconds);
      const until = (await this.ledger.view(model.name)).keys.at(-2)!.expiresAt! * 1000;
      const expected = (Math.floor(this.folder.nowMs / 1000) + overlapSeconds) * 1000;
      if (until !== expected) throw new Error(`until ${until}, expected ${expected}`);
      // Keys that an earlier rotation ended keep their end.
      for (const old of model.keys) old.untilMs = Math.min(old.untilMs, until);
      model.keys.push({ key, untilMs: Number.POSITIVE_INFINITY });
    });
    model.keys = model.keys.slice(-3);
  }

  /** Makes several charges over both meters, some in the same turn, and compares each outcome with the model. */
  async charge(model: Model): Promise<void> {
    const count = 1 + this.random(12);
    const known = model.keys[this.random(model.keys.length)]!;
    // Up to a minute of the latest moment may be lost with the counters.
    if (this.highMs >= known.untilMs && this.highMs < known.untilMs + SAVED_WITHIN_MS) return this.count('in doubt');
    const opens = model.state !== 'closed' && this.highMs < known.untilMs;
    const waiting: Promise<Outcome>[] = [];
    for (let i = 0; i < count; i += 1) {
      const meter = this.meters[this.random(2)]!;
      const found = meter.authenticate(known.key);
      expect(found.kind).toBe(opens ? 'account' : 'unknown');
      if (found.kind === 'unknown') return this.count('refused key');
      waiting.push(chargeOnce(meter, found.account));
    }
    const expected: Outcome[] = [];
    const limit = this.limitOf(model);
    for (let i = 0; i < count; i += 1) {
      const { cycle, used } = this.current(model);
      if (model.state !== 'active') expected.push('not_activated');
      else if (used >= limit) expected.push('quota_exhausted');
      else {
        Object.assign(model, { cycle, used: used + 1, hasLost: cycle === model.cycle && model.hasLost });
        model.served += 1;
        expected.push(limit - used - 1);
      }
    }
    // The order may differ from that of the calls: there are two meters, and some charges wait.
    const order = (outcomes: readonly Outcome[]): Outcome[] => {
      const rank = (outcome: Outcome): number => (typeof outcome === 'number' ? outcome : -1);
      return [...outcomes].sort((a, b) => rank(b) - rank(a));
    };
    expect(order(await Promise.all(waiting))).toEqual(order(expected));
    this.count(String(typeof expected.at(-1) === 'number' ? 'served' : expected.at(-1)));
  }

  async check(model: Model): Promise<void> {
    const { quota, account } = await this.ledger.view(model.name);
    expect(account.state).toBe(model.state);
    expect(quota.quota_limit ?? 0).toBe(model.limit === 0 ? 0 : this.limitOf(model));
    if (model.limit > 0) expect(quota.quota_used).toBe(this.current(model).used);
  }

  /**
   * All processes die, at once or one after the other, or the power is lost. Every answered lookup stays charged. If the counters survive, nothing
   * else is charged; if they are lost, at most what was reserved.
   */
  async crash(model: Model): Promise<void> {
    const backup = join(this.folder.dir, 'old-counters');
    const file = this.folder.countersFile;
    if (this.random(2) === 0 && existsSync(file)) copyFileSync(file, backup);
    await this.charge(model);
    const isOrderly = this.random(4) === 0;
    for (const meter of this.meters) await meter.close();
    if (isOrderly) this.reserver.close();
    else this.reserver.end();
    const isLost = !isOrderly && this.losePower(file, backup);
    await this.start();
    for (const each of this.models) await this.checkAfterCrash(each, isLost);
    this.count(isOrderly ? 'stop' : 'crash');
  }

  async checkAfterCrash(model: Model, isLost: boolean): Promise<void> {
    if (model.limit === 0) return;
    model.hasLost ||= isLost;
    await this.settle(model, this.current(model).cycle);
  }

  /**
   * Compares a model with the ledger. Takes over what only the ledger can know: what the loss of the counters added, and that a cycle, up to
   * `latest`, began because the clock was in it.
   */
  async settle(model: Model, latest: number): Promise<void> {
    const { quota, cycle } = await this.ledger.view(model.name);
    const used = quota.quota_used;
    const known = this.current(model);
    if (cycle > known.cycle) {
      expect(cycle).toBeLessThanOrEqual(latest);
      expect(used).toBe(0);
      this.count('begun by the clock');
    } else {
      expect(cycle).toBe(known.cycle);
      expect(used).toBeGreaterThanOrEqual(known.used);
      const block = Math.max(1, Math.floor(this.limitOf(model, cycle) / 100));
      expect(used - known.used).toBeLessThanOrEqual(model.hasLost ? block : 0);
      // If nothing was used yet, the ledger may still be in the previous cycle.
      if (used === known.used && cycle > model.cycle) return;
      if (used > known.used) this.count('surplus');
    }
    Object.assign(model, { cycle, used, hasLost: false });
  }

  /** Returns whether the counters are lost. */
  losePower(file: string, backup: string): boolean {
    const fate = this.random(4);
    this.count(`power loss ${fate}`);
    if (fate === 3) return false;
    rmSync(file, { force: true });
    if (fate === 1) writeFileSync(file, Buffer.alloc(1 + this.random(COUNTERS_SIZE_BYTES), this.random(256)));
    else if (fate === 2 && existsSync(backup)) copyFileSync(backup, file);
    return true;
  }

  async moveClock(): Promise<void> {
    const kind = this.random(20);
    const before = this.models.map((model) => this.current(model).cycle);
    if (kind < 12) this.folder.nowMs += this.random(3600) * 1000;
    else if (kind < 17) this.folder.nowMs += this.random(20) * DAY_MS;
    else {
      this.folder.nowMs -= this.random(70) * DAY_MS;
      this.count('clock back');
    }
    this.highMs = Math.max(this.highMs, this.folder.nowMs);
    this.reserver.tick();
    if (kind < 17) return;
    for (const [at, model] of this.models.entries()) if (model.limit > 0) await this.settle(model, before[at]!);
  }

  async step(): Promise<void> {
    const model = this.models[this.random(this.models.length)]!;
    const dice = this.random(1000);
    if (dice < 860) return this.charge(model);
    if (dice < 900) return this.moveClock();
    if (dice < 920) return this.check(model);
    if (dice < 926) return this.crash(model);
    if (model.state === 'closed') return;
    if (dice < 960) return this.subscribe(model);
    if (dice < 975) return this.rotate(model);
    if (dice < 985 && model.state === 'active') {
      await this.change(() => this.ledger.setActive(model.name, false));
      model.state = 'suspended';
    } else if (dice < 995 && model.state === 'suspended') {
      await this.change(() => this.ledger.setActive(model.name, true));
      model.state = 'active';
    } else if (dice === 999 && this.models.length < 40) {
      await this.change(() => this.ledger.closeAccount(model.name));
      model.state = 'closed';
      await this.create();
    }
  }
}

describe('the ledger behaves like its model', () => {
  let world: World | undefined;
  afterEach(async () => {
    await world?.folder.remove();
  });

  const seeds = [1, 2, SEED];
  for (const seed of seeds) {
    it(`${STEPS} random steps, seed ${seed}`, async () => {
      world = new World(seed);
      for (let n = 0; n < 4; n += 1) {
        if (n === 0) await world.start();
        await world.create();
      }
      for (let step = 0; step < STEPS; step += 1) {
        try {
          await world.step();
        } catch (error) {
          throw new Error(`seed ${seed}, step ${step}: ${(error as Error).message}`, { cause: error });
        }
      }
      for (const model of world.models) await world.check(model);
      // Over the whole life of each account: never below what was served.
      world.folder.nowMs += 2_000;
      world.reserver.tick();
      for (const model of world.models) {
        const days = world.ledger.database
          .prepare('SELECT total FROM meters JOIN accounts ON id = account_id WHERE name = ?')
          .pluck()
          .get(model.name);
        expect(Number(days)).toBeGreaterThanOrEqual(model.served);
      }
      const interesting = [
        'served',
        'quota_exhausted',
        'not_activated',
        'upgrade',
        'downgrade',
        'crash',
        'stop',
        'surplus',
        'clock back',
        'refused key',
      ];
      for (const what of interesting) expect(world.seen.get(what) ?? 0, `${what} happened`).toBeGreaterThan(0);
    });
  }
});
