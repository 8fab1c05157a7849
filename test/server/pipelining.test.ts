/** When a charge is waited for inside the handler: so that few wait for others, and pipelined requests are answered. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseAddress } from '../../src/network/address.ts';
import { PipeliningGuard } from '../../src/server/request/pipelining.ts';

const client = (n = 1) => parseAddress(`10.0.${n >> 8}.${n & 255}`)!;
const MANY = 50;

const clock = { nowMs: 0 };
let guard: PipeliningGuard;
beforeEach(() => {
  clock.nowMs = 5_000;
  guard = new PipeliningGuard(() => clock.nowMs);
});

/** Whether a request of a client that nobody remembers waits, with many connections open. */
const waits = (inFlight = 0): boolean => guard.shouldWait(client(), MANY, inFlight);

describe('a charge is waited for', () => {
  it('where requests come one after the other', async () => {
    for (let i = 0; i < 5; i++) {
      expect(waits()).toBe(true);
      await nextTurn();
    }
  });

  it('64 times in one turn at most; after a turn with two requests not for a second', async () => {
    for (let i = 0; i < 64; i++) expect(waits()).toBe(true);
    expect(waits()).toBe(false);
    await nextTurn();
    clock.nowMs += 1_000;
    expect(waits()).toBe(false);
    await nextTurn();
    clock.nowMs += 1;
    expect(waits()).toBe(true);
    expect(waits()).toBe(true);
    await nextTurn();
    expect(waits()).toBe(false);
  });

  it('not for a second after others waited for theirs', async () => {
    expect(waits(1)).toBe(false);
    await nextTurn();
    clock.nowMs += 1_000;
    expect(waits()).toBe(false);
    await nextTurn();
    clock.nowMs += 1;
    expect(waits()).toBe(true);
  });

  it('under any load where three connections are open', () => {
    for (let i = 0; i < 100; i++) expect(guard.shouldWait(client(), 3, 2)).toBe(true);
    expect(guard.shouldWait(client(), 4, 2)).toBe(false);
  });

  it('under any load for a client whose connection was cut, for ten minutes', () => {
    guard.remember(client(2));
    for (let i = 0; i < 100; i++) expect(guard.shouldWait(client(2), MANY, 9)).toBe(true);
    expect(guard.shouldWait(client(3), MANY, 9)).toBe(false);
    clock.nowMs += 10 * 60_000 - 1;
    expect(guard.shouldWait(client(2), MANY, 9)).toBe(true);
    clock.nowMs += 1;
    expect(guard.shouldWait(client(2), MANY, 9)).toBe(false);
  });

  it('for the last 1,024 clients at most', () => {
    for (let n = 0; n < 1_024; n++) guard.remember(client(n));
    for (let n = 0; n < 1_024; n++) expect(guard.shouldWait(client(n), MANY, 9)).toBe(true);
    guard.remember(client(2_000));
    expect(guard.shouldWait(client(2_000), MANY, 9)).toBe(true);
    expect(guard.shouldWait(client(5), MANY, 9)).toBe(false);
  });
});

it('a turn has its number until it ends', async () => {
  waits();
  const { turn } = guard;
  waits();
  expect(guard.turn).toBe(turn);
  await nextTurn();
  expect(guard.turn).not.toBe(turn);
});
