/** Syntax of parts of HTTP requests (RFC 9110). */

/** A token of any length, such as a method. */
export const HTTP_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Returns the host in a `Host` header, in lower case and without its port; an empty string if there is no header. */
export function hostOf(header: string | undefined): string {
  return (header ?? '').replace(/:[0-9]*$/, '').toLowerCase();
}
