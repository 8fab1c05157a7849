/**
 * Handles bytes after the last request of a connection, that is after a body or after `Connection: close`. The transport closes the
 * connection when it has read the whole packet, but a further request in the same packet makes it forget to (uWebSockets.js 20.57;
 * uNetworking/uWebSockets.js#1301 is similar). Requests of one packet are handled without a pause. So if no connection has been closed and the
 * event loop turn is the same, the client's next request is such a further one. This file can go when the transport drops what follows a
 * closing answer.
 */
import type { Address } from '../../network/address.ts';
import type { HttpResponse } from '../uws.ts';

/** Keeps requests on a connection that is about to be closed from being served. */
export class ClosingConnections {
  /** Number of connections closed before the last request; -1 without one. */
  #closedBefore = -1;
  readonly #peer = new Uint8Array(16);

  /** Marks a peer's request as the last of its connection. @param closed how many connections were closed before */
  mark(peer: Address, closed: number): void {
    if (this.#closedBefore === -1) setImmediate(this.#forget);
    this.#closedBefore = closed;
    this.#peer.set(peer);
  }

  /** Whether a request follows such a last one. */
  isBehind(peer: Address, closed: number): boolean {
    return this.#closedBefore === closed && Buffer.compare(this.#peer, peer) === 0;
  }

  /**
   * Does not answer a request after the last one, and closes its connection once the previous answer has been sent. If still more requests
   * follow in the packet, the transport closes at once.
   */
  drop(res: HttpResponse): void {
    this.#forget();
    let isOpen = true;
    res.onAborted(() => {
      isOpen = false;
    });
    setImmediate(() => {
      if (isOpen) res.close();
    });
  }

  readonly #forget = (): void => {
    this.#closedBefore = -1;
  };
}
