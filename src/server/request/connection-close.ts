/**
 * What follows the last request of a connection: after a body, or after `Connection: close`. The transport closes when it has
 * read the whole packet, and a further request in the same packet makes it forget to (uWebSockets.js 20.57;
 * uNetworking/uWebSockets.js#1301 is of the same kind). Requests of one packet are handled without a pause: as long as no connection was
 * closed and the turn of the event loop is the same, the next request of that client is such a further one. This can go when the
 * transport drops what follows an answer that closes.
 */
import type { Address } from '../../network/address.ts';
import type { HttpResponse } from '../uws.ts';

/** Keeps what follows on a connection that is about to be closed from being served. */
export class ClosingConnections {
  /** Connections closed until the last request; -1 without one. */
  #closedBefore = -1;
  readonly #peer = new Uint8Array(16);

  /** A request of this peer is the last of its connection; `closed` connections were closed before. */
  mark(peer: Address, closed: number): void {
    if (this.#closedBefore === -1) setImmediate(this.#forget);
    this.#closedBefore = closed;
    this.#peer.set(peer);
  }

  /** Whether a request comes after such a last one. */
  isBehind(peer: Address, closed: number): boolean {
    return this.#closedBefore === closed && Buffer.compare(this.#peer, peer) === 0;
  }

  /**
   * Leaves a request after the last one without an answer, and closes its connection when the answer before it has left. Where even
   * more requests follow in the packet, the transport closes at once.
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
