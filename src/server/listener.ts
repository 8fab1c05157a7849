/** One listening socket of a worker, plain or with TLS, with its connections counted and capped. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { PagegateError } from '../errors.ts';
import { type HttpRequest, type HttpResponse, loadUws, type TemplatedApp, type us_listen_socket } from './uws.ts';

export interface ListenerOptions {
  readonly handle: (res: HttpResponse, req: HttpRequest) => void;
  readonly tls: Config['tls'];
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

  /** Throws `tls_unusable` when certificate and key do not serve. */
  constructor({ handle, tls, connections }: ListenerOptions) {
    this.#app = createApp(tls);
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

function createApp(tls: Config['tls']): TemplatedApp {
  const uws = loadUws();
  if (tls.certificate_file === null || tls.key_file === null) return uws.App();
  checkCertificate(tls.certificate_file, tls.key_file);
  return uws.SSLApp({
    cert_file_name: tls.certificate_file,
    key_file_name: tls.key_file,
    ...(tls.ciphers === null ? {} : { ssl_ciphers: tls.ciphers }),
  });
}

/** Checks that the files hold a certificate and its key before the transport sees them. Returns when the certificate expires. */
export function checkCertificate(certificateFile: string, keyFile: string): Date {
  try {
    const certificate = new X509Certificate(readFileSync(certificateFile));
    const { mode } = statSync(keyFile);
    if ((mode & 0o007) !== 0) throw new Error(`${keyFile} may be read by everybody; take that right away (chmod 0640)`);
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile)))) {
      throw new Error(`the key in ${keyFile} does not belong to the certificate in ${certificateFile}`);
    }
    return new Date(certificate.validTo);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new PagegateError('tls_unusable', `${why}.`, { certificate: certificateFile, key: keyFile }, { cause });
  }
}
