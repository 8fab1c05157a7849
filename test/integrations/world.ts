/** The environment of an integration test: an origin, a stand-in for pagegate, processes that end with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http, { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
export const TOOLS = fileURLToPath(new URL('../../tools/integrations/', import.meta.url));

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });

export interface World {
  readonly folder: string;
  readonly keyFile: string;
  /** Requests that reached the origin, as `METHOD host path`. */
  readonly reached: string[];
  /** Their headers. */
  readonly headers: IncomingHttpHeaders[];
  readonly originPort: number;
  /** Started processes, in order. */
  readonly children: readonly ChildProcess[];
  /** Starts a process that ends with the world. */
  start(command: string, args: readonly string[]): ChildProcess;
  close(): Promise<void>;
}

export async function createWorld(): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-integration-'));
  const keyFile = join(folder, 'api.key');
  const reached: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const origin = createServer((request, response) => {
    reached.push(`${request.method} ${request.headers.host?.split(':')[0]} ${request.url}`);
    headers.push(request.headers);
    request.resume();
    response.end('origin');
  });
  const originPort = await listen(origin);
  const children: ChildProcess[] = [];
  return {
    folder,
    keyFile,
    reached,
    headers,
    originPort,
    children,
    start(command, args) {
      const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
      children.push(child);
      return child;
    },
    async close() {
      for (const child of children) await stop(child);
      origin.closeAllConnections();
      origin.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Ends a process, first with a signal that it can handle. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  if ((await Promise.race([ended.then(() => true), sleep(5_000)])) !== true) child.kill('SIGKILL');
  await ended;
}

/** Waits until a port accepts connections. */
export async function untilListening(port: number, seconds = 10): Promise<void> {
  for (let attempt = 0; attempt < seconds * 20; attempt += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (open) return;
    await sleep(50);
  }
  throw new Error(`nothing listens on port ${port}`);
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request through a proxy, with this target in the request line. */
export function through(
  proxyPort: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const onAnswer = (response: IncomingMessage): void => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    };
    const request = http.request({ host: '127.0.0.1', port: proxyPort, method, path, headers, agent: false }, onAnswer);
    request.on('connect', (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode!, headers: response.headers, body: '' });
    });
    request.on('error', reject);
    request.end();
  });
}

export interface Judge {
  readonly port: number;
  /** Received lookups, as `METHOD url`. */
  readonly asked: string[];
  close(): Promise<void>;
}

type Answer = { readonly status: number; readonly body: string } | 'silence' | 'hang up';

/** A stand-in for pagegate with answers from the test. The tests with the real one are in another file. */
export async function createJudge(answer: (url: string, method: string) => Answer, port = 0): Promise<Judge> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url!, 'http://judge');
    const [url, method] = [searchParams.get('url') ?? '', searchParams.get('method') ?? ''];
    asked.push(`${method} ${url}`);
    const reply = answer(url, method);
    if (reply === 'silence') return;
    if (reply === 'hang up') request.socket.destroy();
    else {
      const body = reply.body.replace('"domain":"x"', `"domain":"${URL.parse(url)?.hostname}"`);
      // As pagegate does if the client should retry later.
      const retry = reply.status === 429 || reply.status === 503 ? { 'retry-after': '30' } : {};
      response.writeHead(reply.status, { 'content-type': 'application/json', ...retry }).end(body);
    }
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An answer with a verdict. The domain is added when it is sent. */
export const verdict = (value: string, id = 'test'): Answer => ({
  status: 200,
  body: JSON.stringify({
    domain: 'x',
    found: true,
    verdict: value,
    matched: { layer: 'rules', id, note: `note of ${id}` },
  }),
});

/** Writes a file into the world's folder. */
export function put(world: World, name: string, text: string, mode = 0o644): string {
  const path = join(world.folder, name);
  writeFileSync(path, text, { mode });
  return path;
}
