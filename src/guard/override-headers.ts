/** What headers make of a request on the other side: one with another method, or for another URL. */

/** Headers by which a request asks to be taken for one with another method. */
export const OVERRIDES = new Set(['x-http-method-override', 'x-method-override', 'x-http-method']);
/** Headers by which some servers are told another URL than the one in the request line. */
export const REWRITES = new Set(['x-original-url', 'x-rewrite-url']);

type Headers = Iterable<readonly [string, string]>;

/** The name that a site knows a header by: many take an underscore for a hyphen. */
const known = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** The method, and those that headers would put in its place; each is judged. Header names may have any case. */
export function methodsOf(method: string, headers: Headers): readonly string[] {
  const methods = [method];
  for (const [name, value] of headers) if (OVERRIDES.has(known(name))) methods.push(value.trim());
  return methods;
}

/** Whether a header names another URL, which nobody would have judged. */
export function namesAnotherUrl(headers: Headers): boolean {
  for (const [name] of headers) if (REWRITES.has(known(name))) return true;
  return false;
}

/** What opening a WebSocket is judged as: what is sent through it later cannot be judged, so it is a write. */
export const WEBSOCKET_METHOD = 'POST';
