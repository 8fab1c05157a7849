/** The listening socket of a worker, plain or with TLS, with its connections counted and capped. */
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { PagegateError } from '../../errors.ts';
import { createMemoryFile } from '../../platform/libc.ts';
import { listeningSockets, refuseNewConnections, type SocketRange, steerConnections } from '../../platform/sockets.ts';
import { type Certificate, configuredCertificate } from '../read-certificate.ts';
import { type HttpRequest, type HttpResponse, loadUws, type TemplatedApp, type us_listen_socket } from '../uws.ts';
import type { ConnectionCount } from './connections.ts';

export interface ListenerOptions {
  readonly handle: (res: HttpResponse, req: HttpRequest) => void;
  readonly tls?: Config['tls'];
  /** What to use instead of the files that `tls` names; where neither is, it listens for plain HTTP. */
  readonly certificate?: Certificate | undefined;
  /** Open connections of this worker. */
  readonly connections: ConnectionCount;
  /** How long a connection may be open without its first whole request, in seconds; 10 unless told. */
  readonly idleSeconds?: number;
  /** How long one may be open without another whole request after an answer, in seconds; 30 unless told. */
  readonly keepAliveSeconds?: number;
}

const IDLE_SECONDS = 10;
const KEEP_ALIVE_SECONDS = 30;
/** Longer than a connection needs from the acceptor to its endpoint. */
const HAND_OVER_MS = 100;
/** How long a connection may still need until it is accepted. */
const HANDSHAKE_MS = 100;

/**
 * Waits, and then until the process has looked at its sockets once more: after a time without the processor, a timer comes before what
 * waits on the sockets, and closing one would reset it.
 */
async function afterPoll(waitMs: number): Promise<void> {
  await setTimeout(waitMs);
  await setImmediate();
}

/** An app with calls of the transport that its types leave out: those that hand connections from one app to another, and a timeout. */
interface HandingApp extends TemplatedApp {
  /** What names it to the app that hands its connections over. */
  getDescriptor(): number;
  addChildAppDescriptor(descriptor: number): void;
  removeChildAppDescriptor(descriptor: number): void;
  /** How long a connection may wait before its first request, in seconds; the transport checks every four. */
  setIdleTimeout(seconds: number): void;
  /** How long it may wait after an answer, in seconds. */
  setResponseTimeout(seconds: number): void;
}

/** What answers the connections that came while one certificate was in use. */
interface Endpoint {
  readonly app: HandingApp;
  /** Open ones. */
  connections: number;
}

/**
 * With TLS, one app listens and never answers: it hands each connection to the endpoint of the certificate in use. So the listening
 * socket stays open when the certificate changes, and no connection that waits to be accepted is lost with it.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #app: HandingApp;
  #endpoint: Endpoint | undefined;
  #retired: Endpoint[] = [];
  #socket: us_listen_socket | undefined;
  /** The same, as the kernel knows it. */
  #descriptor: number | undefined;

  /** @throws PagegateError tls_unusable when the files do not serve */
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
   * New connections get this certificate; the open ones go on with theirs. Only for a listener that began with one.
   *
   * @throws PagegateError tls_unusable, and then changes nothing
   */
  useCertificate(certificate: Certificate): void {
    const endpoint: Endpoint = { app: createEndpointApp(certificate, this.#options.tls?.ciphers), connections: 0 };
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

  /** Frees what belongs to certificates that no open connection uses any more. */
  async closeUnused(): Promise<void> {
    if (this.#retired.length === 0) return;
    // A connection is passed on in a later turn than the one that accepted it.
    await afterPoll(HAND_OVER_MS);
    this.#retired = this.#retired.filter(({ app, connections }) => {
      if (connections > 0) return true;
      app.close();
      return false;
    });
  }

  /**
   * Listens; several workers may share a port, but not port 0.
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

  /** Gives all new connections of the port to some of the sockets that share it, or again to each its share; where the kernel does it. */
  steer(range: SocketRange | undefined): void {
    if (this.#descriptor !== undefined) steerConnections(this.#descriptor, range);
  }

  /**
   * No new connections; the open ones go on. Closing the socket resets what waits there to be accepted, so nothing new is let in before.
   * Resolves when every connection that was accepted is counted as open.
   */
  async stopListening(): Promise<void> {
    if (this.#descriptor !== undefined && refuseNewConnections(this.#descriptor)) await afterPoll(HANDSHAKE_MS);
    this.#descriptor = undefined;
    if (this.#socket !== undefined) loadUws().us_listen_socket_close(this.#socket);
    this.#socket = undefined;
    if (this.#endpoint !== undefined) await afterPoll(HAND_OVER_MS);
  }

  /** Cuts every open connection. Stop listening first: a connection that is on its way to its endpoint would outlive this. */
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

/**
 * The transport says only that it failed.
 *
 * @throws PagegateError tls_unusable
 */
function createEndpointApp(certificate: Certificate, ciphers: string | undefined): HandingApp {
  return withCertificateFiles(certificate, (files) => {
    try {
      return loadUws().SSLApp({ ...files, ...(ciphers === undefined ? {} : { ssl_ciphers: ciphers }) }) as HandingApp;
    } catch (cause) {
      const what = `The TLS library does not take tls.ciphers ("${ciphers}"), or a key of this kind: use RSA, or ECDSA on P-256 or P-384.`;
      throw new PagegateError('tls_unusable', what, { ciphers }, { cause });
    }
  });
}

/** Puts chain and key into files in memory for the time of a task, because the transport takes only names of files. */
function withCertificateFiles<T>(
  { chain, key }: Certificate,
  task: (files: { readonly cert_file_name: string; readonly key_file_name: string }) => T,
): T {
  const [chainFile, keyFile] = [createMemoryFile(chain), createMemoryFile(key)];
  try {
    return task({ cert_file_name: chainFile.path, key_file_name: keyFile.path });
  } finally {
    chainFile.close();
    keyFile.close();
  }
}
