/**
 * The one endpoint of pagegate, asked over a connection of its own: through no proxy, whatever the environment says, and without
 * following a redirect, so that the key reaches the named server and nobody else.
 */
import { X509Certificate } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Agent, IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLoopback } from '../../network/address.ts';
import { http, https } from '../../platform/http.ts';
import { type Answer, failure, type HttpReply, readAnswer } from './answer.ts';

/** A larger answer is not one of pagegate's. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const SOCKETS_MAX = 64;
/**
 * Kept connections are given up before a server as shipped closes them (`server.keep_alive_seconds`, 30), so that no request meets a closing
 * one. Where that setting is near its least, 4, a request may meet one, and is refused as `unreachable`.
 */
const IDLE_MS = 4_000;
/** The first pause before another try; it doubles with each. */
const BACKOFF_MS = 50;
/** Timers of Node.js wait no longer; what is beyond ends at once. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;
const KEY = /^[\x21-\x7e]{1,256}$/;

export interface EndpointOptions {
  /** Where pagegate listens, such as `https://pagegate.example.net:8443`. */
  readonly server: string;
  readonly key: string;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string | Buffer | undefined;
  /** Plain HTTP to another host than loopback, where the key can be read on the way. */
  readonly plainHttp?: boolean | undefined;
  /** Longest time for an answer, retries included. */
  readonly timeoutMs: number;
}

/** The connection to the endpoint: one question, one answer, within a time. */
export class Endpoint {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();

  /** @throws TypeError where an option cannot be used. */
  constructor({ server, key, ca, plainHttp, timeoutMs }: EndpointOptions) {
    this.#url = endpointUrl(server, plainHttp === true);
    if (!KEY.test(key))
      throw new TypeError('key: not an API key, which is 1 to 256 characters without blanks or line ends');
    if (ca !== undefined && !isPem(ca)) {
      throw new TypeError('ca: holds no certificate in PEM; it takes what is in a file, not the path of one');
    }
    if (typeof timeoutMs !== 'number' || !(timeoutMs >= 1 && timeoutMs <= TIMEOUT_MAX_MS)) {
      throw new TypeError(`timeoutMs: must be a number from 1 to ${TIMEOUT_MAX_MS}`);
    }
    // Every question waits for it.
    setMaxListeners(0, this.#closing.signal);
    this.#headers = { 'x-api-key': key, accept: 'application/json' };
    this.#timeoutMs = timeoutMs;
    // An agent of its own: the global one may take a proxy from the environment, and no certificate goes unchecked because of it.
    const pool = { keepAlive: true, maxSockets: SOCKETS_MAX, timeout: IDLE_MS };
    const tls = { rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
    this.#agent = this.#url.protocol === 'https:' ? new https.Agent({ ...pool, ...tls }) : new http.Agent(pool);
  }

  /**
   * Asks about a URL and a method. Never rejects. Asks again only where nothing was charged: after 429 and 503, and where no
   * connection came about.
   */
  async ask(url: string, method: string): Promise<Answer> {
    const target = new URL(this.#url);
    target.searchParams.set('url', url);
    target.searchParams.set('method', method);
    const deadlineMs = performance.now() + this.#timeoutMs;
    for (let pauseMs = BACKOFF_MS; ; pauseMs *= 2) {
      const answer = await this.#once(target, url, deadlineMs - performance.now());
      if (answer.retryMs === undefined) return answer;
      const waitMs = Math.max(answer.retryMs, pauseMs * (0.5 + Math.random() / 2));
      if (performance.now() + waitMs >= deadlineMs) return answer;
      // A closed endpoint asks no more: its next request fails before it is made.
      await sleep(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Ends all connections and all questions. */
  close(): void {
    this.#closing.abort();
    this.#agent.destroy();
  }

  #once(target: URL, url: string, timeoutMs: number): Promise<Answer> {
    return new Promise((resolve) => {
      const options = { agent: this.#agent, headers: this.#headers, signal: this.#closing.signal };
      const request = (this.#url.protocol === 'https:' ? https : http).get(target, options, (response) => {
        const chunks: Buffer[] = [];
        let sizeBytes = 0;
        response.on('data', (chunk: Buffer) => {
          sizeBytes += chunk.length;
          chunks.push(chunk);
          if (sizeBytes > ANSWER_MAX_BYTES) fail('bad_answer');
        });
        response.on('error', () => fail('bad_answer'));
        response.on('end', () => {
          if (!response.complete) return fail('bad_answer');
          end(readAnswer(replyOf(response, Buffer.concat(chunks).toString('utf8')), url));
        });
      });
      const timer = setTimeout(() => fail('timeout'), Math.max(1, timeoutMs));
      const end = (answer: Answer): void => {
        clearTimeout(timer);
        resolve(answer);
      };
      const fail = (id: 'bad_answer' | 'timeout'): void => {
        end(failure(id));
        request.destroy();
      };
      request.on('error', (error: NodeJS.ErrnoException) => {
        const answer = failure('unreachable', error.code ?? error.name);
        end(error.code === 'ECONNREFUSED' ? { ...answer, retryMs: 0 } : answer);
      });
    });
  }
}

function replyOf(response: IncomingMessage, body: string): HttpReply {
  const { 'x-pagegate-data': data, 'retry-after': retryAfter } = response.headers;
  return { status: response.statusCode ?? 0, data: [data].flat()[0] ?? '', retryAfter: retryAfter ?? '', body };
}

/** Whether there is a certificate in it. TLS itself passes over anything else, and then trusts nobody. */
function isPem(ca: string | Buffer): boolean {
  try {
    new X509Certificate(ca);
    return ca.includes('-----BEGIN ');
  } catch {
    return false;
  }
}

function endpointUrl(server: string, plainHttp: boolean): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new TypeError(`server: ${server}: not an http or https URL, such as https://pagegate.example.net:8443`);
  }
  if (
    !['/', '/api', '/api/'].includes(url.pathname) ||
    url.search !== '' ||
    url.hash !== '' ||
    `${url.username}${url.password}` !== ''
  ) {
    throw new TypeError(`server: give the origin alone, such as ${url.origin}`);
  }
  if (url.protocol === 'http:' && !plainHttp && !isLoopback(url.hostname)) {
    throw new TypeError('server: the key would be sent in plain text; use https, or set plainHttp');
  }
  return new URL('/api/check', url);
}
