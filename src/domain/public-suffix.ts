/** Lookups in the Public Suffix List for canonical hosts: the registrable domain of a name, and its parent domains. */
import { getDomain, getPublicSuffix, parse } from 'tldts';
import { mayBeSuffix } from './suffix-filter.ts';

// Hosts are already canonical, so the library need not extract them from a URL or validate them.
const CANONICAL = { extractHostname: false, mixedInputs: false, validateHostname: false, detectIp: false } as const;
const WITH_PRIVATE = { ...CANONICAL, allowPrivateDomains: true } as const;
const ICANN_ONLY = { ...CANONICAL, allowPrivateDomains: false } as const;

/**
 * Returns the registrable domain of a canonical host (the public suffix and one more label), or `undefined` if the host is itself a
 * public suffix. Private suffixes count: `user.github.io` is registrable, `github.io` is not.
 */
export function registrableDomain(host: string): string | undefined {
  if (host.charCodeAt(0) === 0x2e) return undefined;
  return getDomain(host, WITH_PRIVATE) ?? undefined;
}

/** Whether a canonical host is a public suffix in the ICANN section or, with `private`, in either section. */
export function isPublicSuffix(host: string, options: { readonly private: boolean }): boolean {
  return mayBeSuffix(host) && getPublicSuffix(host, options.private ? WITH_PRIVATE : ICANN_ONLY) === host;
}

/** Whether a canonical host ends with a suffix on the list. The library treats any other last label as a suffix, too; it does not count. */
export function hasKnownSuffix(host: string): boolean {
  const { isIcann, isPrivate } = parse(host, WITH_PRIVATE);
  return isIcann === true || isPrivate === true;
}

/**
 * Returns the parents of a key, nearest first, up to and including its registrable domain; a private suffix ends the walk. A parent that
 * starts with `www.` is not a key and is left out: its key is the next parent.
 */
export function parentDomains(key: string): string[] {
  const found: string[] = [];
  // The parent of a name with two labels is a single label, which is not a key.
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
