/** Reads the effective target of a request: the URL, the headers, and the methods that the site may apply. */
import { type Dispatcher, errors } from 'undici';
import { effectiveMethods, namesAnotherUrl, WEBSOCKET_METHOD } from '../override-headers.ts';

/** The fields of undici's options that are read. */
type RequestOptions = Pick<Dispatcher.DispatchOptions, 'origin' | 'path' | 'query' | 'headers' | 'upgrade'> & {
  readonly method: string;
};

export interface RequestTarget {
  readonly url: URL;
  readonly headers: readonly (readonly [string, string])[];
  readonly methods: readonly string[];
}

/**
 * Reads the options of a dispatch. Returns the id of the refusal if they are not valid. The query is merged into the URL, and the URL is made
 * canonical, so that the same text is judged and sent.
 *
 * @throws InvalidArgumentError if the headers are a list of odd length
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

/** Characters that URL parsers percent-encode but some clients send unencoded. Sites treat both forms alike. */
const OFTEN_UNESCAPED = /["'<>^`{|}]/g;

/** Whether the path and query to be sent equal those of the judged URL, apart from the encoding of {@link OFTEN_UNESCAPED}. */
export function isSentAsJudged(url: URL, path: string): boolean {
  const escaped = (text: string): string =>
    text.replace(OFTEN_UNESCAPED, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return escaped(url.origin + path) === escaped(url.href);
}

/** Replaces the GET that opens a WebSocket by the method it is judged as. Any other method is sent unchanged, so it is judged as well. */
function withUpgrade([method, ...overriding]: readonly string[]): readonly string[] {
  return [...new Set([WEBSOCKET_METHOD, ...(method === 'GET' ? [] : [method!]), ...overriding])];
}

function urlOf({ origin, path }: RequestOptions): URL | undefined {
  // A number sign would be sent, but the URL parser would treat it as the start of a fragment, which is not judged.
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
 * Returns the headers as pairs, from any of undici's forms.
 *
 * @throws InvalidArgumentError for a list that ends with a name without value, as undici does
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
