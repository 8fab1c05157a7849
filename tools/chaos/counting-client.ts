/** The clients of a run that breaks a server: each asks on a connection of its own and counts what it reads. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { domainOf } from '../installation.ts';

/** No answer may take longer, and no client goes on for longer without a connection. */
const ANSWER_DEADLINE_MS = 30_000;

const request = (key: string): string =>
  `GET /api/check?url=${domainOf(0)} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;

/** One request on a connection of its own; returns the status. */
export async function askOnce(port: number, key: string): Promise<number> {
  const client = new Client(port, key);
  await client.run(1);
  const [status] = client.statuses.keys();
  if (status === undefined) throw new Error('no answer');
  return status;
}

export interface ClientOptions {
  /** Between an answer and the next request, in milliseconds. */
  readonly pauseMs?: number;
  /** Called with each answer that was read whole, and when its request was sent, on the clock of `Date.now`. */
  readonly onAnswer?: (status: number, sentMs: number) => void;
}

/** A connection that asks again and again, reconnects when it is cut, and keeps count. */
export class Client {
  /** Answers read whole, by status; 0 counts those that did not come in time. */
  readonly statuses = new Map<number, number>();
  /** `quota_remaining` of every 200 that was read. */
  readonly remaining: number[] = [];
  /** Requests sent whose answer never came whole. */
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

  /** Ends after the request that is under way. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Asks until stopped, or so many times; gives up where it finds no server. */
  async run(times = Number.POSITIVE_INFINITY): Promise<void> {
    let left = times;
    let askedMs = performance.now();
    while (left > 0 && !this.#isStopped) {
      const sent = await this.#connection(left);
      if (times === 1) return;
      left -= sent;
      if (sent > 0) askedMs = performance.now();
      else if (performance.now() - askedMs > ANSWER_DEADLINE_MS) return;
      if (left > 0 && !this.#isStopped) await sleep(10);
    }
  }

  /** One connection, until it is cut, stopped or through; returns how many requests it sent. */
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
