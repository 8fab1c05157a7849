/** Protection against other sites: security headers, the allowed host names, and the origin of forms. */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Config } from '../../config/config.ts';
import { isLoopback, withBrackets } from '../../network/address.ts';
import { hostOf } from '../../network/http-syntax.ts';
import { HttpRefusal } from './request.ts';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Headers of every response. Not `no-referrer`: with it, browsers send forms with the origin `null`. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** Returns the host names that a request may have. An attacker may have pointed any other name to this address (DNS rebinding). */
export function allowedNames(config: Config, certificateChain: string | undefined): ReadonlySet<string> {
  const { host, names } = config.console;
  const certified = certificateChain === undefined ? [] : certificateNames(certificateChain);
  return new Set(
    [withBrackets(host), ...(isLoopback(host) ? LOOPBACK_NAMES : []), ...names, ...certified].map(asBrowsersSend),
  );
}

/** Normalizes a name to the form that browsers send: lower case, IPv6 addresses in short form (certificates have the long one). */
const asBrowsersSend = (name: string): string => URL.parse(`http://${name}/`)?.hostname ?? name.toLowerCase();

/** Returns the names of a certificate without wildcards: for those, `console.names` lists the actual names. */
function certificateNames(chain: string): string[] {
  const names = new X509Certificate(chain).subjectAltName ?? '';
  return names.split(', ').flatMap((entry) => {
    const [, kind, name] = /^(DNS|IP Address):([^*]+)$/.exec(entry) ?? [];
    if (kind === undefined || name === undefined) return [];
    return [kind === 'DNS' ? name : withBrackets(name)];
  });
}

/** @throws HttpRefusal 421 for a request that names another host */
export function checkHost(req: IncomingMessage, allowed: ReadonlySet<string>): void {
  if (!allowed.has(hostOf(req.headers.host)))
    throw new HttpRefusal(421, 'This is not a name of the console; console.names lists further ones.');
}

/** @throws HttpRefusal 403 for a form that another site sent */
export function checkOrigin(req: IncomingMessage): void {
  const { origin, host } = req.headers;
  const site = req.headers['sec-fetch-site'];
  const authority = originOf(req)?.replace(/^https?:\/\//, '');
  // `Sec-Fetch-Site` is more reliable than comparing origin and host: a proxy may remove the port from the host.
  const isOwn = site === undefined ? origin === undefined || authority === host : site === 'same-origin';
  if (!isOwn) throw new HttpRefusal(403, 'The form came from another site.');
}

/** Returns the origin that the browser sent; undefined if it sent none, or none of HTTP(S). */
export const originOf = ({ headers: { origin = '' } }: IncomingMessage): string | undefined =>
  /^https?:\/\/[^/]+$/.test(origin) ? origin : undefined;
