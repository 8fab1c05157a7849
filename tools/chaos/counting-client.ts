/** Clients for runs that break a server. Each sends requests on its own connection and counts the answers. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { domainOf } from '../installation.ts';

/** The longest time that an answer may take, and that a client tries to connect. */
const ANSWER_DEADLINE_MS = 30_000;

const request = (key: string): string =>
  `GET /api/check?url=${domainOf(0)} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;

/** Sends one request on a new connection and returns the status. */
export async function askOnce(port: number, key: string): Promise<number> {
  const client = new Client(port, key);
  await client.run(1);
  const [status] = client.statuses.keys();
  if (status === undefined) throw new Error('no answer');
  return status;
}

export interface ClientOptions {
  /** Pause between an answer and the next request, in milliseconds. */
  readonly pauseMs?: number;
  /** Called for each complete answer, with the time at which its request was sent, on the clock of `Date.now`. */
  readonly onAnswer?: (status: number, sentMs: number) => void;
}

/** Sends requests one after the other, reconnects if the connection is cut, and counts. */
export class Client {
  /** Numbers of complete answers, by status; 0 counts those that did not come in time. */
  readonly statuses = new Map<number, number>();
  /** `quota_remaining` of every 200. */
  readonly remaining: number[] = [];
  /** Number of requests without a complete answer. */
  unanswered = 0;
  #isStopped = false;
  readonly port: number;
  readonly #request: string;
  readonly #options: ClientOptions;

  constructor(port: number, key: string, options: ClientOptions = {}) {
    this.port = port;
    this.#options = options;
    this.#request = request(key);
  }

  count(status: number): number {
    return this.statuses.get(status) ?? 0;
  }

  /** Ends after the request in flight. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Sends requests until stopped, or `times` requests. Gives up if it finds no server for too long. */
  async run(times = Number.POSITIVE_INFINITY): Promise<void> {
    let left = times;
    let lastSentMs = performance.now();
    while (left > 0 && !this.#isStopped) {
      const sent = await this.#connection(left);
      if (times === 1) return;
      left -= sent;
      if (sent > 0) lastSentMs = performance.now();
      else if (performance.now() - lastSentMs > ANSWER_DEADLINE_MS) return;
      if (left > 0 && !this.#isStopped) await sleep(10);
    }
  }

  /** Uses one connection until it is cut, stopped or has sent `times` requests. Returns how many it has sent. */
  #connection(times: number): Promise<number> {
    return new Promise((resolve) => {
      let sent = 0;
      let isWaiting = false;
      let sentMs = 0;
      let text = '';
      const socket = connect(this.port, '127.0.0.1');
      const next = (): void => {
        if (sent >= times || this.#isStopped || socket.destroyed) {
          socket.destroy();
          return;
        }
        sent += 1;
        sentMs = Date.now();
        isWaiting = true;
        socket.write(this.#request);
      };
      socket.setNoDelay(true);
      socket.setTimeout(ANSWER_DEADLINE_MS, () => {
        this.#count(0);
        socket.destroy();
      });
      socket.on('connect', next);
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        const status = Number(text.slice(9, 12));
        this.#read(status, text.slice(end + 4, end + 4 + length));
        this.#options.onAnswer?.(status, sentMs);
        text = '';
        isWaiting = false;
        const { pauseMs = 0 } = this.#options;
        if (pauseMs === 0) next();
        else setTimeout(next, pauseMs);
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        if (isWaiting) this.unanswered += 1;
        resolve(sent);
      });
    });
  }

  #read(status: number, body: string): void {
    this.#count(status);
    if (status === 200) this.remaining.push(Number(/"quota_remaining":(\d+)/.exec(body)?.[1]));
  }

  #count(status: number): void {
    this.statuses.set(status, this.count(status) + 1);
  }
}
