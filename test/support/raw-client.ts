/** Requests byte by byte over a socket of one's own, for what an HTTP client library would not send. */
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawResult {
  readonly responses: readonly RawResponse[];
  /** The server closed the connection. */
  readonly closed: boolean;
}

const DEADLINE_MS = 10_000;

/** The text of a request without a body. */
export function requestText(path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): string {
  const lines = Object.entries({ host: 'test', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Sends chunks one by one and reads until `count` responses are there, or the server closes. */
export async function sendRaw(
  port: number,
  chunks: readonly (string | Uint8Array)[],
  count: number,
  /** Which of the responses, from 0, answer a HEAD: they have no body whatever they announce. */
  heads: readonly number[] = [],
): Promise<RawResult> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  try {
    return await exchange(socket, chunks, count, heads);
  } finally {
    socket.destroy();
  }
}

async function exchange(
  socket: Socket,
  chunks: readonly (string | Uint8Array)[],
  count: number,
  heads: readonly number[],
): Promise<RawResult> {
  let received = Buffer.alloc(0);
  let closed = false;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => reject(new Error(`No answer in time; so far: ${received.toString('latin1')}`)),
    DEADLINE_MS,
  );
  const look = (): void => {
    if (closed || parseResponses(received, heads).length >= count) resolve();
  };
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    look();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
    look();
  });
  for (const chunk of chunks) {
    await new Promise<void>((sent) => socket.write(chunk, () => sent()));
    if (chunks.length > 1) await new Promise((next) => setImmediate(next));
  }
  try {
    await promise;
    // A connection that is about to be closed is closed within this time.
    if (!closed) await new Promise((later) => setTimeout(later, 50));
    return { responses: parseResponses(received, heads), closed };
  } finally {
    clearTimeout(timer);
  }
}

/** Reads the responses that are there whole. */
function parseResponses(bytes: Buffer, heads: readonly number[]): RawResponse[] {
  const responses: RawResponse[] = [];
  let text = bytes.toString('latin1');
  for (;;) {
    const end = text.indexOf('\r\n\r\n');
    if (end === -1) return responses;
    const [first = '', ...lines] = text.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const size = heads.includes(responses.length) ? 0 : Number(headers['content-length'] ?? 0);
    if (text.length < end + 4 + size) return responses;
    const body = Buffer.from(text.slice(end + 4, end + 4 + size), 'latin1').toString('utf8');
    responses.push({ status: Number(first.split(' ')[1]), headers, body });
    text = text.slice(end + 4 + size);
  }
}
