/** HTTP/1.1 over a bare socket: sends exactly the bytes of the test and shows every byte of the response. */
import { connect, type Socket } from 'node:net';

const ANSWER_TIMEOUT_MS = 60_000;

/** One response as received. Header names are in lower case. Values of a repeated header are joined by a line feed, which no value contains. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Exchange {
  readonly responses: readonly RawResponse[];
  /** Whether the server closed the connection. Only `untilClose` waits for that. */
  readonly closed: boolean;
  /** Received bytes that are not a complete response. */
  readonly rest: string;
}

export interface ExchangeOptions {
  /** The client's address, from 127.0.0.0/8. For the burst limit each address is another client. */
  readonly from?: string;
  /** Number of responses to wait for. Default: 1. */
  readonly count?: number;
  /** Waits until the server closes the connection, instead of for a number of responses. */
  readonly untilClose?: boolean;
  /** Pause between two chunks. Each chunk is sent in its own TCP segment. */
  readonly pauseMs?: number;
  /** Indexes of the responses to HEAD requests: they have no body, whatever their content-length. */
  readonly heads?: readonly number[];
}

function parseOne(buffer: Buffer, isHead = false): { response: RawResponse; size: number } | undefined {
  const end = buffer.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = buffer.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first)?.[1] ?? Number.NaN);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}\n${value}` : value;
  }
  const length = isHead ? 0 : Number(headers['content-length'] ?? 0);
  const size = end + 4 + length;
  if (buffer.length < size) return undefined;
  return { response: { status, headers, body: buffer.subarray(end + 4, size).toString('utf8') }, size };
}

/** Sends chunks over one new connection and collects the responses. */
export async function exchange(
  port: number,
  chunks: readonly (string | Uint8Array)[],
  options: ExchangeOptions = {},
): Promise<Exchange> {
  const { from = '127.0.0.1', count = 1, untilClose = false, pauseMs = 0, heads = [] } = options;
  const responses: RawResponse[] = [];
  let buffer: Buffer = Buffer.alloc(0);
  let closed = false;
  const socket: Socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true });
  const finished = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no answer in ${ANSWER_TIMEOUT_MS} ms; got ${buffer}`)),
      ANSWER_TIMEOUT_MS,
    );
    const settle = (): void => {
      clearTimeout(timer);
      resolve();
    };
    socket.on('data', (data: Buffer) => {
      buffer = Buffer.concat([buffer, data]);
      for (;;) {
        const next = parseOne(buffer, heads.includes(responses.length));
        if (next === undefined) break;
        responses.push(next.response);
        buffer = buffer.subarray(next.size);
      }
      if (!untilClose && responses.length >= count) settle();
    });
    socket.on('close', () => {
      closed = true;
      settle();
    });
    // A reset also closes the connection; responses received before it count.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') return;
      clearTimeout(timer);
      reject(error);
    });
  });
  const sent = send(socket, chunks, pauseMs);
  try {
    await Promise.all([finished, sent]);
  } finally {
    socket.destroy();
  }
  return { responses, closed, rest: buffer.toString('latin1') };
}

/** Sends requests over one connection, each after the response to the previous one. */
export async function converse(port: number, texts: readonly string[], from: string): Promise<RawResponse[]> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true });
  const responses: RawResponse[] = [];
  let buffer: Buffer = Buffer.alloc(0);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer in ${ANSWER_TIMEOUT_MS} ms`)), ANSWER_TIMEOUT_MS);
    const next = (): void => {
      const text = texts[responses.length];
      if (text !== undefined) socket.write(text);
      else resolve();
      timer.refresh();
    };
    socket.on('connect', next);
    socket.on('data', (data: Buffer) => {
      buffer = Buffer.concat([buffer, data]);
      const one = parseOne(buffer);
      if (one === undefined) return;
      responses.push(one.response);
      buffer = buffer.subarray(one.size);
      next();
    });
    socket.on('close', () => reject(new Error(`closed after ${responses.length} answers`)));
    socket.on('error', reject);
    socket.on('close', () => clearTimeout(timer));
  }).finally(() => socket.destroy());
  return responses;
}

/** Sends a request over an open connection, keeps the connection open, and returns the response. Rejects if the connection closes first. */
export function askOn(socket: Socket, request: string): Promise<RawResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<RawResponse>();
  let received: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk]);
    const one = parseOne(received);
    if (one !== undefined) resolve(one.response);
  };
  const onClose = (): void => reject(new Error(`closed after ${received.length} bytes`));
  socket.on('data', onData);
  socket.on('close', onClose);
  socket.write(request);
  return promise.finally(() => {
    socket.off('data', onData);
    socket.off('close', onClose);
  });
}

async function send(socket: Socket, chunks: readonly (string | Uint8Array)[], pauseMs: number): Promise<void> {
  for (const chunk of chunks) {
    if (socket.destroyed) return;
    // Each character of a string is sent as one byte.
    socket.write(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    else if (chunks.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Returns the text of a request. Target and headers are sent unchanged. */
export function requestText(
  target: string,
  headers: readonly (readonly [string, string])[] = [],
  method = 'GET',
): string {
  const lines = [['host', '127.0.0.1'] as const, ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

let clients = 0;

/** Returns a loopback address that no test of this process has used as a client address before. */
export function nextClient(): string {
  clients += 1;
  return `127.1.${clients >> 8}.${clients & 255}`;
}
