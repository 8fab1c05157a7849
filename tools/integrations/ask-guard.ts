/** The guard for the helpers in this folder: it is created from command-line options, and its decisions have texts for headers and lines. */
import { appendFileSync, readFileSync } from 'node:fs';
import { Guard, type GuardOptions } from '../../src/guard/guard.ts';
import type { GuardVerdict } from '../../src/guard/refusal.ts';

/** The options of every helper, for `parseArgs`. */
export const ASK_OPTIONS = {
  server: { type: 'string', default: 'https://127.0.0.1:8443' },
  'key-file': { type: 'string' },
  'ca-file': { type: 'string' },
  'plain-http': { type: 'boolean', default: false },
  'timeout-ms': { type: 'string', default: '2000' },
  'decision-log': { type: 'string' },
} as const;

/** The same options as a line of help. */
export const ASK_USAGE =
  '--key-file FILE [--server URL] [--ca-file FILE] [--plain-http] [--timeout-ms N] [--decision-log FILE]';

/** The values that `parseArgs` returns for them. */
export interface AskValues {
  readonly server: string;
  readonly 'key-file'?: string | undefined;
  readonly 'ca-file'?: string | undefined;
  readonly 'plain-http'?: boolean;
  readonly 'timeout-ms': string;
  /** File to which one line is appended for each decision. */
  readonly 'decision-log'?: string | undefined;
}

export interface HelperDecision {
  readonly allowed: boolean;
  readonly verdict: GuardVerdict;
  /** The layer and entry that decided, as `layer/id`. */
  readonly reason: string;
  readonly note: string;
}

/** Converts a value to text that is safe in a header, a log line and a helper's answer. */
export const plain = (text: unknown, lengthMax = 200): string =>
  String(text ?? '')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/["\\]/g, "'")
    .slice(0, lengthMax);

export interface Asker {
  /** Returns the decision about a request. Never rejects. */
  ask(url: string, method: string): Promise<HelperDecision>;
  close(): void;
}

/** Creates a guard from command-line options. @throws Error if an option is missing or not valid: a helper must not start half-configured */
export function guardOf(values: AskValues, options: Partial<GuardOptions> = {}): Guard {
  const keyFile = values['key-file'];
  if (keyFile === undefined) throw new Error('--key-file FILE is needed');
  const caFile = values['ca-file'];
  const logFile = values['decision-log'];
  return new Guard({
    server: values.server,
    keyFile,
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
    plainHttp: values['plain-http'] === true,
    timeoutMs: Number(values['timeout-ms']),
    // Synchronous: a decision that cannot be logged is refused.
    ...(logFile === undefined ? {} : { log: (line) => appendFileSync(logFile, line, { mode: 0o600 }) }),
    ...options,
  });
}

/** A URL that its sender and pagegate parse alike: it is ASCII, and before the path it has only a host and a port. */
const PLAIN_URL = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][\x21-\x7e]*)?$/i;

/** Parts of a path that some sites resolve or cut off and others do not: dot segments in any spelling, and backslashes. */
const AMBIGUOUS_PATH = /\\|(?:\/|%2f|%5c)(?:\.|%2e){1,2}(?:;[^/\\]*)?(?:\/|%2f|%5c|$)/i;

/** Whether sites may parse the path of a URL, as sent, in different ways. A number sign also counts: it must not be sent. */
export const isAmbiguous = (url: string): boolean =>
  url.includes('#') || AMBIGUOUS_PATH.test(url.replace(/^[^/]*\/\/|\?.*/gs, ''));

/** Returns the decision about one request. If the guard fails, such as when the decision cannot be logged, the request is refused. */
async function decide(guard: Guard, url: string, method: string) {
  try {
    // Non-ASCII bytes would be judged as characters of one encoding, but sent unchanged, so they are refused.
    if (!PLAIN_URL.test(url)) return guard.refuse(url, method, 'request_target');
    if (isAmbiguous(url)) return guard.refuse(url, method, 'ambiguous_path');
    return await guard.check(url, { method });
  } catch (error) {
    process.stderr.write(`pagegate: the guard failed, so a request is refused: ${plain((error as Error).message)}\n`);
    const note = 'The guard failed. Nothing is fetched without a verdict.';
    return { verdict: 'error', layer: 'guard', id: 'internal', note } as const;
  }
}

/**
 * Creates an asker without a cache: the proxy in front of it caches verdicts itself, or must not cache any. The proxy sends the path
 * unchanged, so a path that sites may parse in different ways is refused.
 */
export function askerOf(values: AskValues): Asker {
  const guard = guardOf(values, { cacheSeconds: 0 });
  return {
    async ask(url, method) {
      const { verdict, layer, id, note } = await decide(guard, url, method);
      return {
        allowed: verdict === 'allow',
        verdict,
        reason: `${plain(layer, 40)}/${plain(id, 80)}`,
        note: plain(note),
      };
    },
    close: () => guard.close(),
  };
}
