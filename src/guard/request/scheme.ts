/** Detects URLs that cannot be judged: those with a scheme other than http and https. A client answers some of them without a request. */

/** A value without a scheme that begins with a host and port. Names without a dot count as a scheme (`data:80/x`), except localhost. */
const HOST_AND_PORT = /^\s*(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?):[0-9]{1,5}(?:[/?#\\]|\s*$)/i;

/** A scheme. URL parsers drop control characters and spaces before it, and tabs and line ends everywhere. */
const SCHEME = /^[\0-\x20]*([a-z][a-z0-9+.-]*):/i;

/**
 * Whether a client finds a scheme other than http and https in a URL. False for a relative URL. The rest of the URL is not checked: whether it is
 * valid depends on the Node.js version, which may accept a host in punycode or not.
 */
export function hasOtherScheme(url: string): boolean {
  if (url.startsWith('https://') || url.startsWith('http://')) return false;
  const [, scheme] = SCHEME.exec(url.replace(/[\t\n\r]/g, '')) ?? [];
  return scheme !== undefined && !/^https?$/i.test(scheme);
}

/** {@link hasOtherScheme} for a value that may also be a bare domain, with or without a port. */
export function namesOtherScheme(value: string): boolean {
  return hasOtherScheme(value) && !HOST_AND_PORT.test(value);
}
