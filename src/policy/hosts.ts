/** Hosts by exact name or by suffix: the longest name that matches wins, the exact one before the suffix. */
import { keyFromHost } from '../domain/normalize.ts';
import { parseAddress } from './addresses.ts';
import { comparableHost } from './types.ts';

/** How far an entry reaches: the host alone, the host and everything below it, or only what is below. */
export type HostReach = 'exact' | 'suffix' | 'below';

type Reaches<T> = { [reach in HostReach]?: T };

export class HostMap<T> {
  private readonly map = new Map<string, Reaches<T>>();

  /** Adds a host. Answers the entry that was there before. */
  add(host: string, reach: HostReach, value: T): T | undefined {
    const entries = this.map.get(host) ?? {};
    const before = entries[reach];
    entries[reach] = value;
    this.map.set(host, entries);
    return before;
  }

  /** The entry for a host in canonical form. */
  find(host: string): T | undefined {
    if (this.map.size === 0) return undefined;
    const own = this.map.get(host);
    if (own?.exact !== undefined || own?.suffix !== undefined) return own.exact ?? own.suffix;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = this.map.get(host.slice(dot + 1));
      if (parent?.below !== undefined || parent?.suffix !== undefined) return parent.below ?? parent.suffix;
    }
    return undefined;
  }

  /** Every entry for a host, the nearest first. */
  *all(host: string): IterableIterator<T> {
    const own = this.map.get(host);
    for (const entry of [own?.exact, own?.suffix]) if (entry !== undefined) yield entry;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = this.map.get(host.slice(dot + 1));
      for (const entry of [parent?.below, parent?.suffix]) if (entry !== undefined) yield entry;
    }
  }

  get isEmpty(): boolean {
    return this.map.size === 0;
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
