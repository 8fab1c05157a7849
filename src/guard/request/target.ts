/** What a request really asks for: the URL, the headers, and the methods it can have on the other side. */
import { type Dispatcher, errors } from 'undici';
import { effectiveMethods, namesAnotherUrl, WEBSOCKET_METHOD } from '../override-headers.ts';

/** What is read of a request; undici's options have it. */
type RequestOptions = Pick<Dispatcher.DispatchOptions, 'origin' | 'path' | 'query' | 'headers' | 'upgrade'> & {
  readonly method: string;
};

export interface RequestTarget {
  readonly url: URL;
  readonly headers: readonly (readonly [string, string])[];
  readonly methods: readonly string[];
}

/**
 * Reads the options of a dispatch; a word says what is wrong with them. The query is worked into the URL, and the URL made canonical,
 * so that one text is judged and sent.
 *
 * @throws InvalidArgumentError where the headers are a list of odd length
 */
export function readRequestTarget(options: RequestOptions): RequestTarget | 'request_target' | 'host_header' {
  const url = urlOf(options);
  if (url === undefined) return 'request_target';
  for (const [name, value] of Object.entries(options.query ?? {})) {
    for (const item of [value].flat()) url.searchParams.append(name, `${item}`);
  }
  const headers = headersOf(options.headers);
  if (headers.some(([name, value]) => name.toLowerCase() === 'host' && value.toLowerCase() !== url.host)) {
    return 'host_header';
  }
  if (namesAnotherUrl(headers)) return 'host_header';
  const methods = effectiveMethods(options.method, headers);
  return { url, headers, methods: options.upgrade ? withUpgrade(methods) : methods };
}

/** What a URL holds escaped that some clients send as it is; sites read both alike. */
const OFTEN_UNESCAPED = /["'<>^`{|}]/g;

/** Whether the path and query that will be sent are those of the URL that was read from them, but for such escapes. */
export function isSentAsJudged(url: URL, path: string): boolean {
  const escaped = (text: string): string =>
    text.replace(OFTEN_UNESCAPED, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return escaped(url.origin + path) === escaped(url.href);
}

/** What opening a WebSocket is judged as, in the place of the GET that it is; another method is sent as it is, so it is judged as well. */
function withUpgrade([method, ...overriding]: readonly string[]): readonly string[] {
  return [...new Set([WEBSOCKET_METHOD, ...(method === 'GET' ? [] : [method!]), ...overriding])];
}

function urlOf({ origin, path }: RequestOptions): URL | undefined {
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

/**
 * The headers, in whichever of undici's forms they come.
 *
 * @throws InvalidArgumentError for a list that ends with a name, as undici does
 */
function headersOf(headers: Dispatcher.DispatchOptions['headers']): [string, string][] {
  if (headers === null || headers === undefined) return [];
  if (Array.isArray(headers)) {
    if (headers.length % 2 === 1) throw new errors.InvalidArgumentError('headers array must be even');
    return Array.from({ length: headers.length / 2 }, (_, at) => [`${headers[2 * at]}`, `${headers[2 * at + 1]}`]);
  }
  const pairs = Symbol.iterator in headers ? [...(headers as Iterable<[string, unknown]>)] : Object.entries(headers);
  return pairs.flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [value].flat().map((item): [string, string] => [name, `${item}`]),
  );
}
