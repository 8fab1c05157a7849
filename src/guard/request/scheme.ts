/** Tells URLs that nobody can judge: those of another scheme than http and https, some of which a client answers without a request. */

/** What a value without a scheme may begin with: a host with its port. Names without a dot are taken for a scheme (`data:80/x`). */
const HOST_AND_PORT = /^\s*(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?):[0-9]{1,5}(?:[/?#\\]|\s*$)/i;

/** Whether a client reads another scheme in a URL than http and https. Not in a relative one, nor in what is no URL. */
export function hasOtherScheme(url: string): boolean {
  if (url.startsWith('https://') || url.startsWith('http://')) return false;
  try {
    const { protocol } = new URL(url);
    return protocol !== 'https:' && protocol !== 'http:';
  } catch {
    return false;
  }
}

/** The same for a value that may also be a bare domain, with or without a port. */
export function namesOtherScheme(value: string): boolean {
  return hasOtherScheme(value) && !HOST_AND_PORT.test(value);
}
