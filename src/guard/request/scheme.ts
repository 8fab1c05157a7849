/** Tells URLs that nobody can judge: those of another scheme than http and https, some of which a client answers without a request. */

/** What a value without a scheme may begin with: a host with its port. Names without a dot are taken for a scheme (`data:80/x`). */
const HOST_AND_PORT = /^\s*(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?):[0-9]{1,5}(?:[/?#\\]|\s*$)/i;

/** Before a scheme a URL parser drops these; and tabs and line ends everywhere. */
const SCHEME = /^[\0-\x20]*([a-z][a-z0-9+.-]*):/i;

/**
 * Whether a client reads another scheme in a URL than http and https; not in a relative one. It does not ask whether the rest is a URL: that
 * depends on the Node.js that it runs on, which may read a host in punycode or not.
 */
export function hasOtherScheme(url: string): boolean {
  if (url.startsWith('https://') || url.startsWith('http://')) return false;
  const [, scheme] = SCHEME.exec(url.replace(/[\t\n\r]/g, '')) ?? [];
  return scheme !== undefined && !/^https?$/i.test(scheme);
}

/** The same for a value that may also be a bare domain, with or without a port. */
export function namesOtherScheme(value: string): boolean {
  return hasOtherScheme(value) && !HOST_AND_PORT.test(value);
}
