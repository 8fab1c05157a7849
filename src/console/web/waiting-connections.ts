/** Connections that nothing is done for: no whole request came, or the latest was answered. */
import type { Socket } from 'node:net';

/** Closes the one that has waited longest where there are too many, so that a new connection always finds a place. */
export class WaitingConnections {
  readonly #most: number;
  /** By the peer's address and port: a TLS socket and the one below it are the same connection. The longest waiting comes first. */
  readonly #sockets = new Map<string, Socket>();

  /** @param most waiting at a time */
  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a new connection in. */
  opened(socket: Socket): void {
    const peer = peerOf(socket);
    socket.once('close', () => this.#sockets.delete(peer));
    this.#sockets.set(peer, socket);
    if (this.#sockets.size <= this.#most) return;
    const [first] = this.#sockets.values();
    first?.destroy();
  }

  /** Its whole request is there. */
  busy(socket: Socket): void {
    this.#sockets.delete(peerOf(socket));
  }

  /** Its request was answered; it waits from now on. */
  answered(socket: Socket): void {
    this.busy(socket);
    if (!socket.destroyed) this.#sockets.set(peerOf(socket), socket);
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
