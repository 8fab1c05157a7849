/** The listening socket of a worker, for plain HTTP or TLS. Its connections are counted and limited. */
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { PagegateError } from '../../errors.ts';
import { listeningSockets, refuseNewConnections, type SocketRange, steerConnections } from '../../platform/sockets.ts';
import { type Certificate, configuredCertificate } from '../read-certificate.ts';
import { createTlsApp, type HandingApp } from '../tls-app.ts';
import { type HttpRequest, type HttpResponse, loadUws, type us_listen_socket } from '../uws.ts';
import type { ConnectionCount } from './connections.ts';

export interface ListenerOptions {
  readonly handle: (res: HttpResponse, req: HttpRequest) => void;
  readonly tls?: Config['tls'];
  /** Used instead of the files in `tls`. Without both, the listener uses plain HTTP. */
  readonly certificate?: Certificate | undefined;
  /** Counts the open connections of this worker. */
  readonly connections: ConnectionCount;
  /** How long a connection may be open before its first complete request, in seconds. Default: 10. */
  readonly idleSeconds?: number;
  /** How long a connection may wait for the next complete request after a response, in seconds. Default: 30. */
  readonly keepAliveSeconds?: number;
}

const IDLE_SECONDS = 10;
const KEEP_ALIVE_SECONDS = 30;
/** Longer than a connection needs from the listening app to its endpoint. */
const HAND_OVER_MS = 100;
/** Time in which connections that are already in the handshake can still be accepted. */
const HANDSHAKE_MS = 100;

/**
 * Waits for a time, and then until the event loop has polled the sockets once more. If the process got no processor time, the timer fires before
 * waiting connections are accepted; closing a socket then would reset them.
 */
async function afterPoll(waitMs: number): Promise<void> {
  await setTimeout(waitMs);
  await setImmediate();
}

/** The app that serves all connections opened while one certificate was in use. */
interface Endpoint {
  readonly app: HandingApp;
  /** Number of open connections. */
  connections: number;
}

/**
 * The listener of a worker. With TLS, one app only listens: it passes each connection to the endpoint of the certificate in use. So the
 * listening socket stays open when the certificate changes, and no connection that waits to be accepted is lost.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #app: HandingApp;
  #endpoint: Endpoint | undefined;
  #retired: Endpoint[] = [];
  #socket: us_listen_socket | undefined;
  /** File descriptor of the listening socket. */
  #descriptor: number | undefined;

  /** @throws PagegateError tls_unusable if the certificate cannot be used */
  constructor(options: ListenerOptions) {
    this.#options = options;
    const certificate = options.certificate ?? (options.tls && configuredCertificate(options.tls));
    const uws = loadUws();
    if (certificate === undefined) {
      this.#app = uws.App() as HandingApp;
      this.#answer(this.#app, () => {});
    } else {
      this.#app = uws.SSLApp({}) as HandingApp;
      this.useCertificate(certificate);
    }
  }

  /**
   * Uses this certificate for new connections; open ones keep theirs. Only for a listener that was created with a certificate.
   *
   * @throws PagegateError tls_unusable; nothing is changed then
   */
  useCertificate(certificate: Certificate): void {
    const endpoint: Endpoint = { app: createTlsApp(certificate, this.#options.tls?.ciphers), connections: 0 };
    this.#answer(endpoint.app, (by) => {
      endpoint.connections += by;
    });
    this.#app.addChildAppDescriptor(endpoint.app.getDescriptor());
    const old = this.#endpoint;
    this.#endpoint = endpoint;
    if (old === undefined) return;
    this.#app.removeChildAppDescriptor(old.app.getDescriptor());
    this.#retired.push(old);
  }

  /** Frees the endpoints of old certificates that no open connection uses. */
  async closeUnused(): Promise<void> {
    if (this.#retired.length === 0) return;
    // A connection reaches its endpoint in a later turn of the event loop than the one that accepted it.
    await afterPoll(HAND_OVER_MS);
    this.#retired = this.#retired.filter(({ app, connections }) => {
      if (connections > 0) return true;
      app.close();
      return false;
    });
  }

  /**
   * Listens. Several workers may share a port, except port 0.
   *
   * @throws PagegateError listen_failed
   */
  async listen(host: string, port: number): Promise<void> {
    const socket = await new Promise<us_listen_socket | false>((resolve) => {
      this.#app.listen(host, port, resolve);
    });
    if (socket === false) {
      throw new PagegateError('listen_failed', `Address ${host}, port ${port}.`, { host, port });
    }
    this.#socket = socket;
    [this.#descriptor] = listeningSockets(port);
  }

  /**
   * Gives all new connections of the port to a range of the sockets that share it; without a range, distributes them over all sockets again.
   * Does nothing if the kernel does not support it.
   */
  steer(range: SocketRange | undefined): void {
    if (this.#descriptor !== undefined) steerConnections(this.#descriptor, range);
  }

  /**
   * Stops accepting connections; open ones continue. Closing the socket resets connections that wait to be accepted, so new ones are refused
   * first. Resolves when every accepted connection is counted as open.
   */
  async stopListening(): Promise<void> {
    if (this.#descriptor !== undefined && refuseNewConnections(this.#descriptor)) await afterPoll(HANDSHAKE_MS);
    this.#descriptor = undefined;
    if (this.#socket !== undefined) loadUws().us_listen_socket_close(this.#socket);
    this.#socket = undefined;
    if (this.#endpoint !== undefined) await afterPoll(HAND_OVER_MS);
  }

  /** Closes every open connection. Call {@link Listener.stopListening} first: a connection on its way to its endpoint would survive. */
  close(): void {
    this.#socket = undefined;
    this.#descriptor = undefined;
    for (const endpoint of [this.#endpoint, ...this.#retired]) endpoint?.app.close();
    this.#app.close();
  }

  #answer(app: HandingApp, onChange: (by: 1 | -1) => void): void {
    const { handle, connections } = this.#options;
    const onConnection = (res: HttpResponse, change: unknown): void => {
      const by = Number(change) > 0 ? 1 : -1;
      onChange(by);
      if (by > 0) connections.opened(res);
      else connections.ended();
    };
    const { idleSeconds = IDLE_SECONDS, keepAliveSeconds = KEEP_ALIVE_SECONDS } = this.#options;
    app.setIdleTimeout(idleSeconds);
    app.setResponseTimeout(keepAliveSeconds);
    app.filter(onConnection);
    app.any('/*', handle);
  }
}
