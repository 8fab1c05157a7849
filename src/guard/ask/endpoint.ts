/**
 * The client of pagegate's endpoint. It uses its own connections: it ignores proxies set in the environment and follows no redirect, so that
 * the key is sent only to the configured server.
 */
import { X509Certificate } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLoopback } from '../../network/address.ts';
import { http, https } from '../../platform/http.ts';
import { type Answer, type HttpReply, noVerdict, readAnswer } from './answer.ts';

/** A larger answer does not come from pagegate. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const SOCKETS_MAX = 64;
/**
 * Idle connections are closed before a server with the default `server.keep_alive_seconds` (30) closes them, so that no request is sent on a
 * closing connection. If that setting is near its minimum of 4, this may happen, and the request is refused as `unreachable`.
 */
const IDLE_MS = 4_000;
/** Pause before the first retry; it doubles with each. */
const BACKOFF_MS = 50;
/** Longest delay of a Node.js timer. A timer with a longer delay fires at once. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;
/** Errors of a failed connection after which a retry may succeed. After a TLS failure it cannot. */
const NO_CONNECTION: ReadonlySet<string | undefined> = new Set([
  ...['EAI_AGAIN', 'ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'],
]);
const KEY = /^[\x21-\x7e]{1,256}$/;

export interface EndpointOptions {
  /** URL of pagegate, such as `https://pagegate.example.net:8443`. */
  readonly server: string;
  readonly key: string;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string | Buffer | undefined;
  /** Permits plain HTTP to a host other than loopback, although the key can be read on the network. */
  readonly plainHttp?: boolean | undefined;
  /** Longest time for an answer including retries, in milliseconds. */
  readonly timeoutMs: number;
}

/** Sends lookups to the endpoint, each with a timeout. */
export class Endpoint {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  /** Connections that were established. */
  readonly #open = new WeakSet<Socket>();

  /** @throws TypeError if an option is not valid. */
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
    // Every open lookup listens to this signal.
    setMaxListeners(0, this.#closing.signal);
    this.#headers = { 'x-api-key': key, accept: 'application/json' };
    this.#timeoutMs = timeoutMs;
    // Not the global agent, which may use a proxy from the environment. `rejectUnauthorized` is set, so that the environment cannot turn it off.
    const pool = { keepAlive: true, maxSockets: SOCKETS_MAX, timeout: IDLE_MS };
    const tls = { rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
    this.#agent = this.#url.protocol === 'https:' ? new https.Agent({ ...pool, ...tls }) : new http.Agent(pool);
  }

  /**
   * Looks up a URL and a method. Never rejects. Retries only if nothing was charged: after 429 and 503, and if no connection was established.
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
      // If the endpoint was closed meanwhile, the next request fails before it is sent.
      await sleep(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Closes all connections. Open lookups fail. */
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
        end(noVerdict(id));
        request.destroy();
      };
      const isSecure = this.#url.protocol === 'https:';
      request.on('socket', (socket) => {
        if (!this.#open.has(socket)) socket.once(isSecure ? 'secureConnect' : 'connect', () => this.#open.add(socket));
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        const answer = noVerdict('unreachable', error.code ?? error.name);
        // On an established connection the server may have received the request and charged it.
        const isUnsent = request.socket === null || !this.#open.has(request.socket);
        end(isUnsent && NO_CONNECTION.has(error.code) ? { ...answer, retryMs: 0 } : answer);
      });
    });
  }
}

function replyOf(response: IncomingMessage, body: string): HttpReply {
  const { 'x-pagegate-data': data, 'retry-after': retryAfter } = response.headers;
  return { status: response.statusCode ?? 0, data: [data].flat()[0] ?? '', retryAfter: retryAfter ?? '', body };
}

/** Whether the text holds a certificate. TLS ignores anything else without an error, and then trusts no certificate. */
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
