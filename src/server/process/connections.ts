/** Open connections of a worker: how many there are, and how many there may be, in all and of one client. */
import { type Address, addressFromBytes, isInAny, type Network } from '../../network/address.ts';
import { clientKey } from '../../network/client-address.ts';
import type { HttpResponse } from '../uws.ts';

/** Why a connection is closed at once. */
export type ConnectionRefusal = 'all' | 'address';

export interface ConnectionLimits {
  /** Open connections. */
  readonly most: number;
  /** Connections of one client (IPv6: one /64) that have not sent a whole request yet. Without limit unless told. */
  readonly mostUnanswered?: number;
  /** Clients that have no such limit. */
  readonly exempt?: readonly Network[];
  /** Called for each connection that is refused. */
  readonly onRefused?: (reason: ConnectionRefusal) => void;
}

/** Open connections of one worker, and those of each client that are not answered yet, against their limits. */
export class ConnectionCount {
  open = 0;
  closed = 0;
  readonly #limits: ConnectionLimits;
  /** Connections that have not sent a whole request yet, by client. */
  readonly #unanswered = new Map<string, number>();
  readonly #peer: Address = new Uint8Array(16);

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts a new connection, and closes it where there are too many. */
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
   * The transport does not say which connection a request came on, or whose connection has ended. But what is set on a new connection
   * is called once: `onData` after its first request, `onAborted` where it ends before.
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
      // The transport stops the clock of a connection whose data somebody reads. Resuming starts it again, but without a pause before it ends the reading.
      connection.pause();
      connection.resume();
    });
  }
}
