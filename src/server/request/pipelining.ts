/**
 * When to wait for a charge inside the handler. The transport cuts a connection when the next request of the same packet is read
 * while an answer is still open; such pipelining is rare, but correct clients may do it. So the server waits for the disk at once
 * where that costs next to nothing, because requests come one after the other; and, under any load, for a client whose connection was
 * cut that way, so that its next try succeeds.
 */
import type { Address } from '../../network/address.ts';

/** With at most this many connections of a worker open, waiting keeps few others waiting. */
const QUIET_CONNECTIONS = 3;
/** Two requests at a time are a sign that more are to come: for this long, charges are waited for together. */
const BUSY_MS = 1_000;
/** A sudden load is met with at most this many waits in one turn of the event loop. */
const WAITS_IN_TURN = 64;
const REMEMBERED_CLIENTS = 1_024;
const REMEMBERED_MS = 10 * 60_000;

export class PipeliningGuard {
  readonly #clients = new Map<string, number>();
  readonly #clockMs: () => number;
  #turn = 0;
  #inTurn = 0;
  #busyUntilMs = Number.NEGATIVE_INFINITY;

  /** `clockMs` is monotonic; in milliseconds. */
  constructor(clockMs: () => number = () => performance.now()) {
    this.#clockMs = clockMs;
  }

  /** A number that changes from one turn of the event loop to the next. */
  get turn(): number {
    return this.#turn;
  }

  /**
   * Counts a request that is about to be charged; says whether to wait for the charge inside the handler. `inFlight` other requests
   * wait for theirs.
   */
  shouldWait(client: Address, openConnections: number, inFlight: number): boolean {
    this.#inTurn += 1;
    if (this.#inTurn === 1) setImmediate(this.#endTurn);
    if (inFlight > 0) this.#busyUntilMs = this.#clockMs() + BUSY_MS;
    const isQuiet = this.#inTurn <= WAITS_IN_TURN && this.#clockMs() > this.#busyUntilMs;
    return isQuiet || openConnections <= QUIET_CONNECTIONS || this.#isRemembered(client);
  }

  /** A request was aborted in the turn in which it came: most likely its successor was in the same packet. */
  remember(client: Address): void {
    if (this.#clients.size >= REMEMBERED_CLIENTS) this.#clients.clear();
    this.#clients.set(nameOf(client), this.#clockMs() + REMEMBERED_MS);
  }

  readonly #endTurn = (): void => {
    if (this.#inTurn > 1) this.#busyUntilMs = this.#clockMs() + BUSY_MS;
    this.#inTurn = 0;
    this.#turn += 1;
  };

  #isRemembered(client: Address): boolean {
    if (this.#clients.size === 0) return false;
    const until = this.#clients.get(nameOf(client));
    return until !== undefined && until > this.#clockMs();
  }
}

const nameOf = (client: Address): string => Buffer.from(client).toString('latin1');
