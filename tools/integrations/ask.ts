/**
 * Asks pagegate about one request, for the helpers beside this file. It fails closed: only a complete answer 200 whose verdict
 * is "allow" allows; every other answer, and none in time, does not.
 */
import { readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

/** The options that each helper has, for `parseArgs`. */
export const ASK_OPTIONS = {
  server: { type: 'string', default: 'https://127.0.0.1:8443' },
  'key-file': { type: 'string' },
  'ca-file': { type: 'string' },
  'timeout-ms': { type: 'string', default: '2000' },
} as const;

/** What `parseArgs` makes of them. */
export interface AskValues {
  readonly server: string;
  readonly 'key-file'?: string | undefined;
  readonly 'ca-file'?: string | undefined;
  readonly 'timeout-ms': string;
}

export interface AskOptions {
  /** Where pagegate listens, for example https://127.0.0.1:8443. */
  readonly server: string;
  /** A file that holds the API key and nothing else; only its owner (and group) may read it. */
  readonly keyFile: string;
  /** Certificates to trust instead of the system's, PEM. */
  readonly caFile?: string | undefined;
  readonly timeoutMs: number;
}

export interface Decision {
  readonly allowed: boolean;
  readonly verdict: 'allow' | 'deny' | 'flag' | 'error';
  /** What decided, as `layer/id`, or why there is no verdict. */
  readonly reason: string;
  readonly note: string;
}

/** An answer larger than this is not one of pagegate's. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const KEY = /^[\x21-\x7e]{1,256}$/;

const failure = (reason: string): Decision => ({
  allowed: false,
  verdict: 'error',
  reason,
  note: 'pagegate gave no verdict; access is denied until it does',
});

/** Text that is safe in a header, a log line and a helper's answer. */
export const plain = (text: unknown, lengthMax = 200): string =>
  String(text ?? '')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/["\\]/g, "'")
    .slice(0, lengthMax);

function readKey(path: string): string {
  const stats = statSync(path);
  if ((stats.mode & 0o007) !== 0) throw new Error(`${path}: others may access the API key; chmod o= it`);
  const key = readFileSync(path, 'utf8').trim();
  if (!KEY.test(key)) throw new Error(`${path}: holds no API key`);
  return key;
}

/** Reads a verdict out of an answer's body; anything unexpected is a failure. */
export function readDecision(status: number | undefined, body: string): Decision {
  let answer: Record<string, unknown>;
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null) return failure(`status ${status}, no JSON object`);
    answer = value as Record<string, unknown>;
  } catch {
    return failure(`status ${status}, no JSON`);
  }
  if (status !== 200) return failure(`status ${status} ${plain(answer['error'], 40)}`);
  const { verdict, matched } = answer;
  if (verdict !== 'allow' && verdict !== 'deny' && verdict !== 'flag') return failure('no known verdict');
  const { layer, id, note } = (matched ?? {}) as Record<string, unknown>;
  return { allowed: verdict === 'allow', verdict, reason: `${plain(layer, 40)}/${plain(id, 80)}`, note: plain(note) };
}

export interface Asker {
  /** Asks about a URL and the method meant for it. Never rejects. */
  ask(url: string, method: string): Promise<Decision>;
  close(): void;
}

/** An asker as the command line wants it. Throws as `createAsker` does, and where an option is missing or no number. */
export function askerOf(values: AskValues): Asker {
  const keyFile = values['key-file'];
  if (keyFile === undefined) throw new Error('--key-file FILE is needed');
  const timeoutMs = Number(values['timeout-ms']);
  if (!(timeoutMs >= 1)) throw new Error('--timeout-ms must be a number from 1');
  return createAsker({ server: values.server, keyFile, caFile: values['ca-file'], timeoutMs });
}

/** Opens a keep-alive client. Throws where the key file or an option is wrong: a helper must not start half-configured. */
export function createAsker(options: AskOptions): Asker {
  const server = new URL(options.server);
  if (server.protocol !== 'https:' && server.protocol !== 'http:')
    throw new Error(`--server ${server.href}: no http(s)`);
  const headers = { 'X-API-Key': readKey(options.keyFile), Accept: 'application/json' };
  const secure = server.protocol === 'https:';
  const ca = options.caFile === undefined ? {} : { ca: readFileSync(options.caFile) };
  // Never the global agent: that one may take a proxy from the environment, which would get the key and give the verdict.
  const agent = secure
    ? new https.Agent({ keepAlive: true, maxSockets: 64, ...ca })
    : new http.Agent({ keepAlive: true, maxSockets: 64 });
  const client = secure ? https : http;

  const once = (target: URL): Promise<{ decision: Decision; stale: boolean }> =>
    new Promise((resolve) => {
      const fail = (reason: string, stale = false): void => resolve({ decision: failure(reason), stale });
      const request = client.get(
        target,
        { agent, headers, signal: AbortSignal.timeout(options.timeoutMs) },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on('data', (chunk: Buffer) => {
            size += chunk.length;
            if (size > ANSWER_MAX_BYTES) request.destroy(new Error('answer too large'));
            else chunks.push(chunk);
          });
          response.on('error', (error) => fail(plain(error.message, 80)));
          response.on('end', () => {
            if (!response.complete) return fail('answer cut off');
            const decision = readDecision(response.statusCode, Buffer.concat(chunks).toString('utf8'));
            return resolve({ decision, stale: false });
          });
        },
      );
      // A kept connection that the server closed meanwhile never carried the request: one retry on a new one is safe.
      request.on('error', (error: NodeJS.ErrnoException) => {
        fail(plain(error.code ?? error.name, 80), request.reusedSocket && error.code === 'ECONNRESET');
      });
    });

  return {
    async ask(url, method) {
      const target = new URL('/api/check', server);
      target.searchParams.set('url', url);
      target.searchParams.set('method', method);
      const first = await once(target);
      return first.stale ? (await once(target)).decision : first.decision;
    },
    close: () => agent.destroy(),
  };
}
