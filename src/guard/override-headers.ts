/** Headers that make a server treat a request as one with another method or for another URL. */

/** Headers that override the method of a request. */
export const OVERRIDES = new Set(['x-http-method-override', 'x-method-override', 'x-http-method']);
/** Headers with a URL that some servers use instead of the one in the request line. */
export const REWRITES = new Set(['x-original-url', 'x-rewrite-url']);

type Headers = Iterable<readonly [string, string]>;

/** Returns the name that a site recognizes a header by: many treat an underscore as a hyphen. */
const known = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Returns the method and those that headers would replace it with. Each must be judged. Header names may have any case. */
export function effectiveMethods(method: string, headers: Headers): readonly string[] {
  const methods = [method];
  for (const [name, value] of headers) if (OVERRIDES.has(known(name))) methods.push(value.trim());
  return methods;
}

/** Whether a header names another URL, which would not be judged. */
export function namesAnotherUrl(headers: Headers): boolean {
  for (const [name] of headers) if (REWRITES.has(known(name))) return true;
  return false;
}

/** The method that opening a WebSocket is judged as. The messages sent later cannot be judged, so it counts as a write. */
export const WEBSOCKET_METHOD = 'POST';
