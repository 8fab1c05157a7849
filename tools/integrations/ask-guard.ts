/** The guard as the helpers beside this file need it: options of a command line in, words for a header or a line out. */
import { appendFileSync, readFileSync } from 'node:fs';
import { Guard, type GuardOptions } from '../../src/guard/guard.ts';
import type { GuardVerdict } from '../../src/guard/refusal.ts';

/** The options that each helper has, for `parseArgs`. */
export const ASK_OPTIONS = {
  server: { type: 'string', default: 'https://127.0.0.1:8443' },
  'key-file': { type: 'string' },
  'ca-file': { type: 'string' },
  'plain-http': { type: 'boolean', default: false },
  'timeout-ms': { type: 'string', default: '2000' },
  'decision-log': { type: 'string' },
} as const;

/** The same as a line of help. */
export const ASK_USAGE =
  '--key-file FILE [--server URL] [--ca-file FILE] [--plain-http] [--timeout-ms N] [--decision-log FILE]';

/** What `parseArgs` makes of them. */
export interface AskValues {
  readonly server: string;
  readonly 'key-file'?: string | undefined;
  readonly 'ca-file'?: string | undefined;
  readonly 'plain-http'?: boolean;
  readonly 'timeout-ms': string;
  /** A file that one line is appended to for each decision. */
  readonly 'decision-log'?: string | undefined;
}

export interface HelperDecision {
  readonly allowed: boolean;
  readonly verdict: GuardVerdict;
  /** What decided, as `layer/id`. */
  readonly reason: string;
  readonly note: string;
}

/** Text that is safe in a header, a log line and a helper's answer. */
export const plain = (text: unknown, lengthMax = 200): string =>
  String(text ?? '')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/["\\]/g, "'")
    .slice(0, lengthMax);

export interface Asker {
  /** Asks about a URL and the method meant for it. Never rejects. */
  ask(url: string, method: string): Promise<HelperDecision>;
  close(): void;
}

/** A guard as the command line wants it. Throws where an option is missing or cannot be used: a helper must not start half-configured. */
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
    // Waited for: a decision that cannot be written down is no decision.
    ...(logFile === undefined ? {} : { log: (line) => appendFileSync(logFile, line, { mode: 0o600 }) }),
    ...options,
  });
}

/** A URL that its sender and pagegate read alike: its bytes are ASCII, and in front of the path is nothing but a host and a port. */
const PLAIN_URL = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][\x21-\x7e]*)?$/i;

/** In a path, what some sites resolve or cut off and others do not: dot segments, however they are written, and a backslash. */
const AMBIGUOUS_PATH = /\\|(?:\/|%2f|%5c)(?:\.|%2e){1,2}(?:;[^/\\]*)?(?:\/|%2f|%5c|$)/i;

/** Whether sites read the path of a URL in different ways as it is sent. What follows a number sign must not be sent. */
export const isAmbiguous = (url: string): boolean =>
  url.includes('#') || AMBIGUOUS_PATH.test(url.replace(/^[^/]*\/\/|\?.*/gs, ''));

/** The decision about one request; a guard that fails, as where a decision cannot be written down, has refused it. */
async function decide(guard: Guard, url: string, method: string) {
  try {
    // Other bytes are judged as the letters that they are in one encoding, and are sent as they came.
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
 * Asks about every request, even one that it asked about before: what stands in front of it keeps verdicts itself, or is to keep none. It sends the path as it came, so
 * one that sites read in different ways is refused.
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
