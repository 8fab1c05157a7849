/**
 * When to wait for a charge inside the handler. The transport cuts a connection when the next request of the same packet is read
 * while an answer is still open; such pipelining is rare, but correct clients may do it. So the server waits for the disk at once
 * where that costs next to nothing, because there is little to do; and, under any load, for a client whose connection was cut that
 * way, so that its next try succeeds.
 */
import type { Address } from './address.ts';

/** With at most this many connections of a worker open, waiting keeps few others waiting. */
const QUIET_CONNECTIONS = 4;
/** Up to this many requests in a turn of the event loop (a moving average) there is nothing to be gained from answering them together. */
const QUIET_REQUESTS = 2;
const AVERAGE_WEIGHT = 0.25;
/** Without a request for this long, what was before does not matter. */
const FORGET_MS = 100;
/** A sudden load is met with at most this many waits in one turn. */
const WAITS_IN_TURN = 64;
const REMEMBERED_CLIENTS = 1_024;
const REMEMBERED_MS = 10 * 60_000;

export class PipeliningGuard {
  readonly #clients = new Map<string, number>();
  #turn = 0;
  #inTurn = 0;
  #average = 0;
  #lastTurnMs = Number.NEGATIVE_INFINITY;

  /** A number that changes from one turn of the event loop to the next. */
  get turn(): number {
    return this.#turn;
  }

  /** Counts a request that is about to be charged; says whether to wait for the charge inside the handler. */
  shouldWait(client: Address, openConnections: number): boolean {
    this.#inTurn += 1;
    if (this.#inTurn === 1) setImmediate(this.#endTurn);
    const isQuiet = this.#average <= QUIET_REQUESTS || performance.now() - this.#lastTurnMs > FORGET_MS;
    return (
      openConnections <= QUIET_CONNECTIONS || (isQuiet && this.#inTurn <= WAITS_IN_TURN) || this.#isRemembered(client)
    );
  }

  /** A request was aborted in the turn in which it came: most likely its successor was in the same packet. */
  remember(client: Address): void {
    if (this.#clients.size >= REMEMBERED_CLIENTS) this.#clients.clear();
    this.#clients.set(nameOf(client), performance.now() + REMEMBERED_MS);
  }

  readonly #endTurn = (): void => {
    const now = performance.now();
    const before = now - this.#lastTurnMs > FORGET_MS ? 0 : this.#average;
    this.#average = before + (this.#inTurn - before) * AVERAGE_WEIGHT;
    this.#lastTurnMs = now;
    this.#inTurn = 0;
    this.#turn += 1;
  };

  #isRemembered(client: Address): boolean {
    if (this.#clients.size === 0) return false;
    const until = this.#clients.get(nameOf(client));
    return until !== undefined && until > performance.now();
  }
}

const nameOf = (client: Address): string => Buffer.from(client).toString('latin1');
