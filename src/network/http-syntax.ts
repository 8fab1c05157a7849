/** Parts of HTTP requests, as RFC 9110 writes them. */

/** What a method may be written with: a token, of any length. */
export const HTTP_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** The host that the header `Host` names: in lower case, without its port, which may be empty; an empty text where there is no header. */
export function hostOf(header: string | undefined): string {
  return (header ?? '').replace(/:[0-9]*$/, '').toLowerCase();
}
