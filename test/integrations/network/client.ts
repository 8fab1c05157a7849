/** Other programs on the host that use a proxy: curl, and a client that sends unusual requests. */
import { spawn } from 'node:child_process';
import { connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface Result {
  readonly code: number | null;
  /** 0 if there was no response. */
  readonly status: number;
  readonly body: string;
}

export interface Way {
  readonly port: number;
  /** The proxy's certificate authority, PEM. */
  readonly caFile: string;
}

/** Arguments of curl: no configuration file, a timeout, and the status on a line at the end. */
export const curlWords = ({ caFile }: Way, seconds = 20): string[] => [
  ...['-q', '-s', '--max-time', String(seconds)],
  ...['--cacert', caFile, '-w', '\n%{http_code}'],
];

/** Runs a curl with {@link curlWords}. */
export function runCurl(command: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<Result> {
  return new Promise((resolve) => {
    const child = spawn(command, words, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
    });
    child.once('close', (code) => {
      const end = output.lastIndexOf('\n');
      resolve({ code, status: Number(output.slice(end + 1)), body: output.slice(0, end) });
    });
  });
}

/** Runs curl with the proxy set in its environment. */
export function curlThrough(way: Way, ...words: string[]): Promise<Result> {
  const url = `http://127.0.0.1:${way.port}`;
  const env = { PATH: process.env['PATH'], http_proxy: url, https_proxy: url, no_proxy: '' };
  return runCurl('curl', [...curlWords(way), ...words], env);
}

/** A tunnel to open, and the TLS server name inside it. Without a name the text is sent into the tunnel unchanged. */
export interface Tunnel {
  readonly to: string;
  readonly name?: string;
}

/** Sends bytes to a proxy, through a tunnel if one is given. Returns everything received until the connection closes. */
export function speak(port: number, text: string, tunnel?: Tunnel): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1');
    let received = '';
    const listen = (stream: NodeJS.ReadableStream): void => {
      stream.on('data', (chunk) => {
        received += chunk;
      });
      stream.on('close', () => resolve(received)).on('error', () => resolve(received));
    };
    socket.setTimeout(3_000, () => socket.destroy());
    if (tunnel === undefined) {
      listen(socket);
      socket.write(text);
      return;
    }
    socket.on('error', () => resolve(received));
    socket.once('data', (head) => {
      if (!head.toString().includes(' 200 ')) return resolve(head.toString());
      const inner =
        tunnel.name === undefined ? socket : connectTls({ socket, servername: tunnel.name, rejectUnauthorized: false });
      listen(inner);
      inner.write(text);
    });
    socket.write(`CONNECT ${tunnel.to} HTTP/1.1\r\nHost: ${tunnel.to}\r\n\r\n`);
  });
}

/** Sends an HTTP/2 request inside a tunnel, with a body of undeclared length. Returns its status, or that the proxy does not support HTTP/2. */
export function speakHttp2(port: number, host: string, headers: OutgoingHttpHeaders, body: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1');
    socket.setTimeout(3_000, () => socket.destroy());
    socket.on('error', () => {}).on('close', () => resolve('no answer'));
    socket.once('data', () => {
      const tls = connectTls({ socket, servername: host, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
      tls.on('error', () => {});
      tls.once('secureConnect', () => {
        if (tls.alpnProtocol !== 'h2') {
          resolve('no HTTP/2');
          socket.destroy();
          return;
        }
        const session = connectHttp2(`https://${host}`, { createConnection: () => tls }).on('error', () => {});
        const request = session.request(headers).on('error', () => {});
        request.on('response', ({ ':status': status }) => {
          resolve(String(status));
          session.destroy();
        });
        request.end(body);
      });
    });
    socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
  });
}

/** Sends a text into a tunnel inside the TLS of another tunnel. Returns what is received from it. */
export function speakNested(port: number, outer: Required<Tunnel>, inner: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connectTcp(port, '127.0.0.1');
    socket.setTimeout(3_000, () => socket.destroy());
    socket.on('error', () => {}).on('close', () => resolve(received));
    socket.once('data', () => {
      const tls = connectTls({ socket, servername: outer.name, rejectUnauthorized: false });
      tls.on('error', () => {});
      tls.on('data', (chunk) => {
        if (received === '') tls.write(text);
        received += chunk;
      });
      tls.write(`CONNECT ${inner} HTTP/1.1\r\nHost: ${inner}\r\n\r\n`);
    });
    socket.write(`CONNECT ${outer.to} HTTP/1.1\r\nHost: ${outer.to}\r\n\r\n`);
  });
}

/** Returns the text of a request that closes its connection. */
export const get = (path: string, host: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`;
