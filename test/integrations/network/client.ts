/** Other programs on the host that use a proxy: curl, and a client that says what no ordinary one would. */
import { spawn } from 'node:child_process';
import { connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface Result {
  readonly code: number | null;
  /** 0 where there was no answer. */
  readonly status: number;
  readonly body: string;
}

export interface Way {
  readonly port: number;
  /** The proxy's authority, PEM. */
  readonly caFile: string;
}

/** Words for curl: no file of the user's, a limit of time, and the status in a last line of its own. */
export const curlWords = ({ caFile }: Way, seconds = 20): string[] => [
  ...['-q', '-s', '--max-time', String(seconds)],
  ...['--cacert', caFile, '-w', '\n%{http_code}'],
];

/** Runs a curl that was given {@link curlWords}. */
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

/** curl, which the environment sends to the proxy. */
export function curlThrough(way: Way, ...words: string[]): Promise<Result> {
  const url = `http://127.0.0.1:${way.port}`;
  const env = { PATH: process.env['PATH'], http_proxy: url, https_proxy: url, no_proxy: '' };
  return runCurl('curl', [...curlWords(way), ...words], env);
}

/** A tunnel to ask for, and the name to give for TLS inside; without a name the text is sent into the tunnel as it is. */
export interface Tunnel {
  readonly to: string;
  readonly name?: string;
}

/** Sends bytes to a proxy, through a tunnel where one is given; returns all that came back until somebody closed. */
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

/** One request by HTTP/2 inside a tunnel, its body without a length; returns its status, or that the proxy speaks no HTTP/2. */
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

/** A tunnel inside the TLS of a tunnel: what was sent into it, and what came back of it. */
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

/** The text of a request that closes its connection. */
export const get = (path: string, host: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`;
