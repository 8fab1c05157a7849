/** Idle connections: their first request is incomplete, or their latest request was answered. */
import type { Socket } from 'node:net';

/** Closes the connection that has been idle longest if there are too many, so that a new one is always accepted. */
export class WaitingConnections {
  readonly #most: number;
  /** By the peer's address and port, because a TLS socket and its TCP socket are one connection. Longest idle first. */
  readonly #sockets = new Map<string, Socket>();

  /** @param most maximum number of idle connections */
  constructor(most: number) {
    this.#most = most;
  }

  /** Adds a new connection. */
  opened(socket: Socket): void {
    const peer = peerOf(socket);
    socket.once('close', () => this.#sockets.delete(peer));
    this.#sockets.set(peer, socket);
    if (this.#sockets.size <= this.#most) return;
    const [first] = this.#sockets.values();
    first?.destroy();
  }

  /** Removes a connection whose request is complete. */
  busy(socket: Socket): void {
    this.#sockets.delete(peerOf(socket));
  }

  /** Adds a connection again after its request was answered. */
  answered(socket: Socket): void {
    this.busy(socket);
    if (!socket.destroyed) this.#sockets.set(peerOf(socket), socket);
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
