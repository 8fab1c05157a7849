/**
 * When to wait for a charge inside the handler. The transport cuts a connection when the next request of the same packet is read
 * while an answer is still open; such pipelining is rare, but correct clients may do it. So the server waits for the disk at once
 * where that costs nobody anything, because few connections are open; and for a client whose connection was cut that way, so that its
 * next try succeeds under any load.
 */
import type { Address } from './address.ts';

/** With at most this many connections of a worker open, there is next to nothing to be gained from answering later. */
const QUIET_CONNECTIONS = 4;
const REMEMBERED_CLIENTS = 1_024;
const REMEMBERED_MS = 10 * 60_000;

export class PipeliningGuard {
  readonly #clients = new Map<string, number>();
  #turn = 0;
  #isTurnMarked = false;

  /** A number that changes from one turn of the event loop to the next. */
  turn(): number {
    if (!this.#isTurnMarked) {
      this.#isTurnMarked = true;
      setImmediate(() => {
        this.#isTurnMarked = false;
        this.#turn += 1;
      });
    }
    return this.#turn;
  }

  /** Whether an answer to this client should be waited for inside the handler. */
  shouldWait(client: Address, openConnections: number): boolean {
    if (openConnections <= QUIET_CONNECTIONS) return true;
    if (this.#clients.size === 0) return false;
    const until = this.#clients.get(nameOf(client));
    return until !== undefined && until > performance.now();
  }

  /** A request was aborted in the turn in which it came: most likely its successor was in the same packet. */
  remember(client: Address): void {
    if (this.#clients.size >= REMEMBERED_CLIENTS) this.#clients.clear();
    this.#clients.set(nameOf(client), performance.now() + REMEMBERED_MS);
  }
}

const nameOf = (client: Address): string => Buffer.from(client).toString('latin1');
