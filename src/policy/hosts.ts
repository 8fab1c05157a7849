/** Hosts by exact name or by suffix: the longest name that matches wins, the exact one before the suffix. */
import { keyFromHost } from '../domain/normalize.ts';
import { parseAddress } from './addresses.ts';
import { comparableHost } from './types.ts';

export class HostMap<T> {
  private readonly exact = new Map<string, T>();
  private readonly suffix = new Map<string, T>();

  /** Adds a host; with `below` it stands for everything below it too. Answers the entry that was there before. */
  add(host: string, below: boolean, value: T): T | undefined {
    const map = below ? this.suffix : this.exact;
    const before = map.get(host);
    map.set(host, value);
    return before;
  }

  /** The entry for a host in canonical form. */
  find(host: string): T | undefined {
    const exact = this.exact.get(host);
    if (exact !== undefined || this.suffix.size === 0) return exact;
    for (let start = 0; ; ) {
      const found = this.suffix.get(start === 0 ? host : host.slice(start));
      if (found !== undefined) return found;
      const dot = host.indexOf('.', start);
      if (dot < 0) return undefined;
      start = dot + 1;
    }
  }

  /** The entry for exactly this host. */
  findExact(host: string): T | undefined {
    return this.exact.get(host);
  }

  /** The suffix entries of the hosts above one, nearest first; the host itself left out. */
  *above(host: string): IterableIterator<T> {
    if (this.suffix.size === 0) return;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const found = this.suffix.get(host.slice(dot + 1));
      if (found !== undefined) yield found;
    }
  }
}

/** The canonical form of a host that somebody wrote into a policy, or undefined where it is none. */
export function policyHost(text: string): string | undefined {
  const key = keyFromHost(text);
  if ('key' in key) return comparableHost(key.key);
  if (key.problem === 'single_label') return /^[a-z0-9_-]+$/i.test(text) ? text.toLowerCase() : undefined;
  if (key.problem !== 'ip_address') return undefined;
  const canonical = URL.parse(`http://${text}/`)?.hostname;
  return canonical !== undefined && parseAddress(canonical) !== undefined ? canonical : undefined;
}
