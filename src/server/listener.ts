/** One listening socket of a worker, plain or with TLS, with its connections counted and capped. */
import type { Config } from '../config/config.ts';
import { PagegateError } from '../errors.ts';
import { type Certificate, configuredCertificate, withCertificateFiles } from './certificate.ts';
import { type HttpRequest, type HttpResponse, loadUws, type TemplatedApp, type us_listen_socket } from './uws.ts';

export interface ListenerOptions {
  readonly handle: (res: HttpResponse, req: HttpRequest) => void;
  readonly tls: Config['tls'];
  /** What to use instead of the files that `tls` names; where neither is, it listens for plain HTTP. */
  readonly certificate?: Certificate | undefined;
  /** Open connections of this worker, over all its listeners. */
  readonly connections: ConnectionCount;
}

/** Open connections, and how many may be open. */
export class ConnectionCount {
  readonly most: number;
  readonly onRefused: () => void;
  open = 0;
  closed = 0;

  constructor(most: number, onRefused: () => void) {
    this.most = most;
    this.onRefused = onRefused;
  }
}

export class Listener {
  readonly #app: TemplatedApp;
  #socket: us_listen_socket | undefined;
  #connections = 0;

  /** Throws `tls_unusable` when the files do not serve. */
  constructor({ handle, tls, certificate, connections }: ListenerOptions) {
    this.#app = createApp(certificate ?? configuredCertificate(tls), tls.ciphers);
    const onConnection = (res: HttpResponse, change: unknown): void => {
      const by = Number(change) > 0 ? 1 : -1;
      this.#connections += by;
      connections.open += by;
      if (by < 0) connections.closed += 1;
      if (by > 0 && connections.open > connections.most) {
        connections.onRefused();
        res.close();
      }
    };
    this.#app.filter(onConnection);
    this.#app.any('/*', handle);
  }

  /** Open connections that this listener accepted. */
  get connections(): number {
    return this.#connections;
  }

  /** Listens; several workers, and several listeners of one worker, may share a port, but not port 0. */
  async listen(host: string, port: number): Promise<void> {
    const socket = await new Promise<us_listen_socket | false>((resolve) => {
      this.#app.listen(host, port, resolve);
    });
    if (socket === false) {
      throw new PagegateError('listen_failed', `Address ${host}, port ${port}.`, { host, port });
    }
    this.#socket = socket;
  }

  /** No new connections; the open ones go on. */
  stopListening(): void {
    if (this.#socket !== undefined) loadUws().us_listen_socket_close(this.#socket);
    this.#socket = undefined;
  }

  /** Cuts every connection. */
  close(): void {
    this.#socket = undefined;
    this.#app.close();
  }
}

function createApp(certificate: Certificate | undefined, ciphers: string | null): TemplatedApp {
  const uws = loadUws();
  if (certificate === undefined) return uws.App();
  return withCertificateFiles(certificate, (files) =>
    uws.SSLApp({ ...files, ...(ciphers === null ? {} : { ssl_ciphers: ciphers }) }),
  );
}
