/**
 * What stands behind a refusal that closes its connection. The transport closes when it has read the whole packet, and a further
 * request in the same packet makes it forget to (uWebSockets.js 20.57; uNetworking/uWebSockets.js#1301 is of the same kind). This can go
 * when the transport drops what stands behind an answer that closes. Requests of one packet are handled without a pause: as long as no connection was
 * closed and the turn of the event loop is the same, the next request of that client is such a further one.
 */
import type { Address } from '../../network/address.ts';

/** Keeps what follows on a connection that is about to be closed from being served. */
export class ClosingGuard {
  /** Connections closed until the refusal; -1 without one. */
  #closedBefore = -1;
  readonly #peer = new Uint8Array(16);

  /** A refusal to this peer closes its connection; `closed` connections were closed before. */
  mark(peer: Address, closed: number): void {
    if (this.#closedBefore === -1) setImmediate(this.#forget);
    this.#closedBefore = closed;
    this.#peer.set(peer);
  }

  /** Whether a request is one behind such a refusal. */
  isBehind(peer: Address, closed: number): boolean {
    return this.#closedBefore === closed && Buffer.compare(this.#peer, peer) === 0;
  }

  readonly #forget = (): void => {
    this.#closedBefore = -1;
  };
}
