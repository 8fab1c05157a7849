/** Hosts by exact name or by suffix: the longest name that matches wins, the exact one before the suffix. */
import { keyFromHost } from '../domain/normalize.ts';
import { parseAddress } from './addresses.ts';
import { comparableHost } from './types.ts';

/** How far an entry reaches: the host alone, the host and everything below it, or only what is below. */
export type HostReach = 'exact' | 'suffix' | 'below';

export class HostMap<T> {
  private readonly exact = new Map<string, T>();
  private readonly suffix = new Map<string, T>();
  private readonly below = new Map<string, T>();

  /** Adds a host. Answers the entry that was there before. */
  add(host: string, reach: HostReach, value: T): T | undefined {
    const map = this[reach];
    const before = map.get(host);
    map.set(host, value);
    return before;
  }

  /** The entry for a host in canonical form. */
  find(host: string): T | undefined {
    const own = this.exact.get(host) ?? this.suffix.get(host);
    if (own !== undefined) return own;
    if (this.suffix.size === 0 && this.below.size === 0) return undefined;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = host.slice(dot + 1);
      const found = this.below.get(parent) ?? this.suffix.get(parent);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Every entry for a host, the nearest first. */
  *all(host: string): IterableIterator<T> {
    for (const own of [this.exact.get(host), this.suffix.get(host)]) if (own !== undefined) yield own;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = host.slice(dot + 1);
      for (const found of [this.below.get(parent), this.suffix.get(parent)]) if (found !== undefined) yield found;
    }
  }

  get isEmpty(): boolean {
    return this.exact.size === 0 && this.suffix.size === 0 && this.below.size === 0;
  }
}

/** A host as a policy writes it: `=host` the host alone, `*.host` what is below it, `host` both. */
export function readPolicyHost(text: string): { readonly host: string; readonly reach: HostReach } | undefined {
  const reach = text.startsWith('=') ? 'exact' : text.startsWith('*.') ? 'below' : 'suffix';
  const host = policyHost(text.slice(reach === 'exact' ? 1 : reach === 'below' ? 2 : 0));
  return host === undefined ? undefined : { host, reach };
}

/** The canonical form of a host that somebody wrote into a policy, or undefined where it is none. */
function policyHost(text: string): string | undefined {
  const key = keyFromHost(text);
  if ('key' in key) return comparableHost(key.key);
  if (key.problem === 'single_label') return /^[a-z0-9_-]+$/i.test(text) ? text.toLowerCase() : undefined;
  if (key.problem !== 'ip_address') return undefined;
  const canonical = URL.parse(`http://${text}/`)?.hostname;
  return canonical !== undefined && parseAddress(canonical) !== undefined ? canonical : undefined;
}
