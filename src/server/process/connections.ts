/** Counts a worker's open connections, and limits them in total and per client. */
import { type Address, addressFromBytes, isInAny, type Network } from '../../network/address.ts';
import { clientKey } from '../../network/client-address.ts';
import type { HttpResponse } from '../uws.ts';

/** Why a connection is closed at once. */
export type ConnectionRefusal = 'all' | 'address';

export interface ConnectionLimits {
  /** Most open connections of this worker. */
  readonly most: number;
  /** Most connections of one client (IPv6: one /64) that have not sent a complete request yet. Unlimited by default. */
  readonly mostUnanswered?: number;
  /** Clients that `mostUnanswered` does not apply to. */
  readonly exempt?: readonly Network[];
  /** Called for each connection that is refused. */
  readonly onRefused?: (reason: ConnectionRefusal) => void;
}

/** Counts the open connections of one worker and the unanswered ones of each client, and enforces their limits. */
export class ConnectionCount {
  open = 0;
  closed = 0;
  readonly #limits: ConnectionLimits;
  /** Number of connections that have not sent a complete request yet, by client. */
  readonly #unanswered = new Map<string, number>();
  readonly #peer: Address = new Uint8Array(16);

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts a new connection, and closes it if there are too many. */
  opened(connection: HttpResponse): void {
    this.open += 1;
    const refusal = this.#refusal(connection);
    if (refusal === undefined) return;
    this.#limits.onRefused?.(refusal);
    connection.close();
  }

  /** Counts the end of a connection. */
  ended(): void {
    this.open -= 1;
    this.closed += 1;
  }

  #refusal(connection: HttpResponse): ConnectionRefusal | undefined {
    const { most, mostUnanswered = Number.POSITIVE_INFINITY, exempt = [] } = this.#limits;
    if (this.open > most) return 'all';
    const peer = addressFromBytes(connection.getRemoteAddress(), this.#peer);
    if (isInAny(peer, exempt)) return undefined;
    const client = clientKey(peer);
    const count = this.#unanswered.get(client) ?? 0;
    if (count >= mostUnanswered) return 'address';
    this.#unanswered.set(client, count + 1);
    this.#releaseOnce(connection, client);
    return undefined;
  }

  /**
   * Ends the count of an unanswered connection with its first request or its end. The transport does not report which connection a request came
   * on, or which one has ended. But the handlers set on a new connection are called once: `onData` after its first request, `onAborted` if it
   * ends before.
   */
  #releaseOnce(connection: HttpResponse, client: string): void {
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const count = this.#unanswered.get(client)! - 1;
      if (count === 0) this.#unanswered.delete(client);
      else this.#unanswered.set(client, count);
    };
    connection.onAborted(release);
    connection.onData(() => {
      release();
      // The transport stops the idle timeout of a connection that has an `onData` handler. Resuming starts it again, but without a pause before,
      // it ends the reading.
      connection.pause();
      connection.resume();
    });
  }
}
