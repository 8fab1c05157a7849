/** The Public Suffix List, asked about canonical hosts: who owns the name, where a walk to the parents ends. */
import { getDomain, getPublicSuffix, parse } from 'tldts';

// Hosts arrive canonical, so the library need not look for a host inside a URL or check it again.
const CANONICAL = { extractHostname: false, mixedInputs: false, validateHostname: false, detectIp: false } as const;
const WITH_PRIVATE = { ...CANONICAL, allowPrivateDomains: true } as const;
const ICANN_ONLY = { ...CANONICAL, allowPrivateDomains: false } as const;

/**
 * The registrable domain of a canonical host (the public suffix and one label more), or `undefined` where the host is itself a
 * public suffix. Private suffixes count: `user.github.io` is registrable, `github.io` is not.
 */
export function registrableDomain(host: string): string | undefined {
  if (host.charCodeAt(0) === 0x2e) return undefined;
  return getDomain(host, WITH_PRIVATE) ?? undefined;
}

/** Whether a canonical host is a public suffix: of the ICANN section, or, with `private`, of either section. */
export function isPublicSuffix(host: string, options: { readonly private: boolean }): boolean {
  return getPublicSuffix(host, options.private ? WITH_PRIVATE : ICANN_ONLY) === host;
}

/** Whether the end of a canonical host is on the list, and no mere last label that nobody registered. */
export function hasKnownSuffix(host: string): boolean {
  const { isIcann, isPrivate } = parse(host, WITH_PRIVATE);
  return isIcann === true || isPrivate === true;
}

/**
 * The parents of a key, nearest first, up to and including its registrable domain; a private suffix ends the walk. A parent that
 * is no key itself, because it starts with `www.`, is left out: the parent after it is its key.
 */
export function parentDomains(key: string): string[] {
  const found: string[] = [];
  // The last of two labels alone is not a key.
  const first = key.indexOf('.');
  if (first < 0 || key.indexOf('.', first + 1) < 0) return found;
  const top = registrableDomain(key);
  if (top === undefined || top === key) return found;
  const last = key.length - top.length;
  for (let dot = key.indexOf('.'); dot >= 0 && dot < last; dot = key.indexOf('.', dot + 1)) {
    const start = dot + 1;
    if (start < last && key.startsWith('www.', start)) continue;
    found.push(key.slice(start));
  }
  return found;
}
