/** What a request really asks for: the URL, the headers, and the methods it can have on the other side. */
import type { Dispatcher } from 'undici';

export interface Target {
  readonly url: URL;
  /** Names and values by turns. */
  readonly headers: readonly string[];
  /** The method, and those that headers would put in its place. */
  readonly methods: readonly string[];
}

/** Headers by which a request asks to be taken for one with another method. */
const OVERRIDES = new Set(['x-http-method-override', 'x-method-override', 'x-http-method']);

/**
 * Reads the options of a dispatch; a word says what is wrong with them. The query is worked into the URL, and the URL made canonical,
 * so that one text is judged and sent.
 */
export function readTarget(options: Dispatcher.DispatchOptions): Target | 'request_target' | 'host_header' {
  const url = urlOf(options);
  if (url === undefined) return 'request_target';
  for (const [name, value] of Object.entries(options.query ?? {})) {
    for (const item of [value].flat()) url.searchParams.append(name, `${item}`);
  }
  const headers = headerList(options.headers);
  const methods = [options.method];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!.toLowerCase();
    if (name === 'host' && headers[at + 1]!.toLowerCase() !== url.host) return 'host_header';
    if (OVERRIDES.has(name)) methods.push(headers[at + 1]!.trim());
  }
  return { url, headers, methods };
}

function urlOf({ origin, path }: Dispatcher.DispatchOptions): URL | undefined {
  // A number sign would be sent, but judged as the begin of a fragment.
  if (!path.startsWith('/') || path.includes('#')) return undefined;
  try {
    const base = new URL(origin ?? '');
    if (base.protocol !== 'https:' && base.protocol !== 'http:') return undefined;
    return new URL(base.origin + path);
  } catch {
    return undefined;
  }
}

/** The headers, in whichever of undici's forms they come, as names and values by turns. */
function headerList(headers: Dispatcher.DispatchOptions['headers']): string[] {
  if (headers === null || headers === undefined) return [];
  if (Array.isArray(headers)) return headers.map(String);
  const pairs = Symbol.iterator in headers ? [...(headers as Iterable<[string, unknown]>)] : Object.entries(headers);
  return pairs.flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [value].flat().flatMap((item) => [name, `${item}`]),
  );
}
