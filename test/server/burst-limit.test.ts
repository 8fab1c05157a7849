import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { parseAddress } from '../../src/network/address.ts';
import {
  BurstLimiter,
  burstTableSizeBytes,
  initializeBurstTable,
  monotonicMs,
} from '../../src/server/request/burst-limit.ts';

const WINDOW_MS = 60_000;
/** Times are kept in ticks of 16 ms and rounded so that a window is never too short. It may be up to two ticks too long. */
const SLACK_MS = 32;

function guardWith(limits: { limit: number; max_clients: number }) {
  const memory = new SharedArrayBuffer(burstTableSizeBytes(limits));
  initializeBurstTable(memory);
  const clock = { now: 1_000_000 };
  return { guard: new BurstLimiter(memory, limits, () => clock.now), clock, memory };
}

const v4 = (n: number) => parseAddress(`10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`)!;

describe('the burst limit', () => {
  it('lets 240 requests pass in a minute, and no more', () => {
    const { guard, clock } = guardWith({ limit: 240, max_clients: 1024 });
    for (let i = 0; i < 240; i++) {
      clock.now += 100;
      expect(guard.admit(v4(1))).toBe(0);
    }
    const wait = guard.admit(v4(1));
    expect(wait).toBeGreaterThan(35);
    expect(wait).toBeLessThanOrEqual(37);
    expect(guard.admit(v4(2))).toBe(0);
    clock.now += wait * 1_000;
    expect(guard.admit(v4(1))).toBe(0);
  });

  it('does not count the requests that it refused', () => {
    const { guard, clock } = guardWith({ limit: 3, max_clients: 1024 });
    for (let i = 0; i < 3; i++) expect(guard.admit(v4(1))).toBe(0);
    for (let i = 0; i < 100; i++) expect(guard.admit(v4(1))).toBeGreaterThan(0);
    clock.now += WINDOW_MS + SLACK_MS;
    expect(guard.admit(v4(1))).toBe(0);
  });

  it('is a sliding window: never more than the limit in any 60 seconds, and never refuses below the limit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(40_000), { minLength: 20, maxLength: 60 }),
        (limit, gaps) => {
          const { guard, clock } = guardWith({ limit, max_clients: 1024 });
          const passed: number[] = [];
          let refused = 0;
          for (const gap of gaps) {
            clock.now += gap;
            const since = (ms: number) => passed.filter((at) => at > clock.now - ms).length;
            const recent = since(WINDOW_MS);
            const wait = guard.admit(v4(7));
            if (wait === 0) {
              expect(recent).toBeLessThan(limit);
              passed.push(clock.now);
            } else {
              refused += 1;
              expect(since(WINDOW_MS + SLACK_MS)).toBeGreaterThanOrEqual(limit);
            }
          }
          expect(passed.length + refused).toBe(gaps.length);
        },
      ),
    );
  });

  it('gives a Retry-After that is long enough, and at most one second too long', () => {
    const { guard, clock } = guardWith({ limit: 1, max_clients: 1024 });
    expect(guard.admit(v4(1))).toBe(0);
    clock.now += 12_345;
    const wait = guard.admit(v4(1));
    clock.now += (wait - 1) * 1_000 - SLACK_MS;
    expect(guard.admit(v4(1))).toBe(1);
    clock.now += 1_000 + SLACK_MS;
    expect(guard.admit(v4(1))).toBe(0);
  });

  it('counts IPv6 by /64 and IPv4 by address, including IPv4-mapped IPv6 addresses', () => {
    const { guard } = guardWith({ limit: 1, max_clients: 1024 });
    expect(guard.admit(parseAddress('2001:db8:1:2::1')!)).toBe(0);
    expect(guard.admit(parseAddress('2001:db8:1:2:ffff::9')!)).toBeGreaterThan(0);
    expect(guard.admit(parseAddress('2001:db8:1:3::1')!)).toBe(0);
    expect(guard.admit(parseAddress('1.2.3.4')!)).toBe(0);
    expect(guard.admit(parseAddress('::ffff:1.2.3.4')!)).toBeGreaterThan(0);
    for (const other of [
      '1.2.3.5',
      '1.2.4.4',
      '1.3.3.4',
      '2.2.3.4',
      '2001:db8:2:2::1',
      '2001:db9:1:2::1',
      '3001:db8:1:2::1',
    ])
      expect(guard.admit(parseAddress(other)!), other).toBe(0);
  });

  it('distinguishes the clients of one set, including IPv4 and IPv6 addresses with the same bits', () => {
    const { guard } = guardWith({ limit: 1, max_clients: 8 });
    const clients = ['1.2.3.4', '102:304::', '102:304:0:1::', '102:304:1::', '102:305::', '1.2.3.5', '::', '0.0.0.0'];
    for (const client of clients) expect(guard.admit(parseAddress(client)!), client).toBe(0);
    for (const client of clients) expect(guard.admit(parseAddress(client)!), client).toBeGreaterThan(0);
  });

  it('spreads the networks of one provider over its table', () => {
    const { guard } = guardWith({ limit: 1, max_clients: 1024 });
    for (let n = 0; n < 100; n++) expect(guard.admit(parseAddress(`2001:db8:${n.toString(16)}:1::`)!)).toBe(0);
  });

  it('groups clients into sets unpredictably', () => {
    const shared = (): string => {
      const { guard } = guardWith({ limit: 1, max_clients: 64 });
      return Array.from({ length: 500 }, (_, n) => (guard.admit(v4(n)) === 0 ? '-' : 'x')).join('');
    };
    expect(shared()).not.toBe(shared());
  });

  it('distinguishes clients in the first minute after the host starts', () => {
    const { guard, clock } = guardWith({ limit: 2, max_clients: 8 });
    clock.now = 0;
    for (const n of [1, 2, 3]) {
      expect([guard.admit(v4(n)), guard.admit(v4(n))]).toEqual([0, 0]);
      expect(guard.admit(v4(n))).toBeGreaterThan(0);
    }
  });

  it('supports every configured number of clients', () => {
    const size = (max_clients: number): number => burstTableSizeBytes({ limit: 1, max_clients });
    expect(size(1)).toBe(size(8));
    expect(size(9)).toBeGreaterThan(size(8));
    expect(size(9)).toBe(size(16));
    expect(guardWith({ limit: 1, max_clients: 1 }).guard.admit(v4(1))).toBe(0);
  });

  it('refuses memory that was not initialized', () => {
    const limits = { limit: 1, max_clients: 8 };
    const memory = new SharedArrayBuffer(burstTableSizeBytes(limits));
    expect(() => new BurstLimiter(memory, limits)).toThrow(/not initialized/);
  });

  it('does not forget what another worker counted if this worker reads its clock a little earlier', () => {
    const { guard, clock, memory } = guardWith({ limit: 2, max_clients: 1024 });
    const late = new BurstLimiter(memory, { limit: 2, max_clients: 1024 }, () => clock.now - 3_000);
    expect(guard.admit(v4(1))).toBe(0);
    expect(late.admit(v4(1))).toBe(0);
    expect(late.admit(v4(1))).toBeGreaterThan(0);
    expect(guard.admit(v4(1))).toBeGreaterThan(0);
  });

  it('keeps its table: if there are more clients than places, none gets more than the limit', () => {
    const limits = { limit: 2, max_clients: 1024 };
    const { guard, clock } = guardWith(limits);
    let passedTwice = 0;
    for (let client = 0; client < 20_000; client++) {
      const outcomes = [guard.admit(v4(client)), guard.admit(v4(client)), guard.admit(v4(client))];
      expect(outcomes[2]).toBeGreaterThan(0);
      if (outcomes[0] === 0 && outcomes[1] === 0) passedTwice += 1;
    }
    expect(passedTwice).toBeGreaterThan(1000);
    expect(passedTwice).toBeLessThan(1024 + 1024 / 8 + 1);
    clock.now += WINDOW_MS + SLACK_MS;
    expect(guard.admit(v4(1_000_000))).toBe(0);
  });

  it('counts a request until it is a full minute old, and gives a Retry-After that fits', () => {
    const { guard, clock } = guardWith({ limit: 1, max_clients: 1024 });
    clock.now += 15;
    expect(guard.admit(v4(1))).toBe(0);
    clock.now += 59_986;
    expect(guard.admit(v4(1))).toBe(1);
    clock.now = 2_000_000;
    expect(guard.admit(v4(1))).toBe(0);
    clock.now += 58_000;
    expect(guard.admit(v4(1))).toBe(3);
    clock.now += 3_000;
    expect(guard.admit(v4(1))).toBe(0);
  });

  it('reuses no record that was used in the last minute, however old its oldest request is', () => {
    const { guard, clock } = guardWith({ limit: 2, max_clients: 8 });
    for (let client = 0; client < 8; client++) expect(guard.admit(v4(client))).toBe(0);
    clock.now += 50_000;
    for (let client = 0; client < 8; client++) expect(guard.admit(v4(client))).toBe(0);
    clock.now += 11_000;
    expect(guard.admit(v4(8))).toBe(0);
    for (let client = 0; client < 8; client++) {
      expect(guard.admit(v4(client))).toBe(0);
      expect(guard.admit(v4(client))).toBeGreaterThan(0);
    }
  });

  it('uses a clock that all processes of the host share', () => {
    const module = new URL('../../src/server/request/burst-limit.ts', import.meta.url).href;
    const program = `import { monotonicMs } from ${JSON.stringify(module)}; console.log(monotonicMs());`;
    const beforeMs = monotonicMs();
    const readMs = Number(execFileSync(process.execPath, ['--input-type=module', '--eval', program]));
    const afterMs = monotonicMs();
    expect([beforeMs, readMs, afterMs]).toEqual([beforeMs, readMs, afterMs].toSorted((a, b) => a - b));
  });

  /** Sets the lock of every set. */
  const setLocks = (memory: SharedArrayBuffer, holder: number): void => {
    const words = new Int32Array(memory);
    const sets = 1024 / 8;
    const setWords = (words.length - 8) / sets;
    for (let set = 0; set < sets; set++) words[8 + set * setWords] = holder;
  };

  it('takes over a lock whose holder died', () => {
    const { guard, memory } = guardWith({ limit: 1, max_clients: 1024 });
    setLocks(memory, 999_999);
    expect(guard.admit(v4(1))).toBe(0);
    expect(guard.admit(v4(1))).toBeGreaterThan(0);
  });

  it('takes over no lock after a pause of its own process: the holder was probably paused, too', () => {
    const { guard, memory } = guardWith({ limit: 1, max_clients: 1024 });
    setLocks(memory, 999_999);
    let looks = 0;
    const now = vi.spyOn(performance, 'now').mockImplementation(() => {
      looks += 1;
      if (looks === 20) setLocks(memory, 0);
      return looks * 10_000;
    });
    try {
      expect(guard.admit(v4(1))).toBe(0);
    } finally {
      now.mockRestore();
    }
    expect(looks).toBe(20);
  });

  it('counts exactly when several threads share the table', async () => {
    const limits = { limit: 240, max_clients: 1024 };
    const memory = new SharedArrayBuffer(burstTableSizeBytes(limits));
    initializeBurstTable(memory);
    const source = `
      const { parentPort, workerData } = require('node:worker_threads');
      (async () => {
        const { BurstLimiter } = await import(workerData.burst);
        const { parseAddress } = await import(workerData.address);
        const guard = new BurstLimiter(workerData.memory, workerData.limits);
        let passed = 0;
        for (let i = 0; i < 5000; i++) if (guard.admit(parseAddress('192.0.2.1')) === 0) passed += 1;
        parentPort.postMessage(passed);
      })();`;
    const start = () =>
      new Worker(source, {
        eval: true,
        workerData: {
          memory,
          limits,
          burst: new URL('../../src/server/request/burst-limit.ts', import.meta.url).href,
          address: new URL('../../src/network/address.ts', import.meta.url).href,
        },
      });
    const counts = await Promise.all(
      [start(), start(), start()].map(async (worker) => (await once(worker, 'message'))[0]),
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(240);
  });

  it('needs bounded memory for any limit', () => {
    expect(burstTableSizeBytes({ limit: 100_000, max_clients: 4_194_304 })).toBeLessThanOrEqual(512 * 1024 * 1024);
    expect(burstTableSizeBytes({ limit: 240, max_clients: 65_536 })).toBeLessThan(80 * 1024 * 1024);
  });
});
