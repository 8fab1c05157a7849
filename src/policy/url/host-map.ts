/** Hosts by exact name or by suffix: the longest name that matches wins, the exact one before the suffix. */
import { keyFromHost } from '../../domain/normalize.ts';

/**
 * A host without its leading `www.` labels, for comparing hosts with each other; `www.com` keeps its own. Unlike a key it needs no
 * public suffix list: both sides of every comparison go through it.
 */
export function comparableHost(host: string): string {
  let bare = host;
  while (bare.startsWith('www.') && bare.includes('.', 4)) bare = bare.slice(4);
  return bare;
}

/** How far an entry reaches: the host alone, the host and everything below it, or only what is below. */
export type HostReach = 'exact' | 'suffix' | 'below';

const NONE: readonly never[] = Object.freeze([]);

type Reaches<T> = { [reach in HostReach]?: T };

/** Values by host; what is found is the nearest entry. */
export class HostMap<T> {
  readonly #map = new Map<string, Reaches<T>>();
  /** For each mark of a host that was added 1: most hosts that are asked for have another one, and need no copy and no hash. */
  readonly #marks = new Uint8Array(4096);

  /** Adds a host. Answers the entry that was there before. */
  add(host: string, reach: HostReach, value: T): T | undefined {
    const entries = this.#map.get(host) ?? {};
    const before = entries[reach];
    entries[reach] = value;
    this.#map.set(host, entries);
    this.#marks[markOf(host, 0)] = 1;
    return before;
  }

  /** The entries of the host that `text` is from `start` on. */
  #at(text: string, start: number): Reaches<T> | undefined {
    return this.#marks[markOf(text, start)] === 0 ? undefined : this.#map.get(text.slice(start));
  }

  /** The nearest entry for a host in canonical form. */
  find(host: string): T | undefined {
    return this.all(host)[0];
  }

  /** Every entry for a host, the nearest first. */
  all(host: string): readonly T[] {
    let found: T[] | undefined;
    const add = (...entries: (T | undefined)[]): void => {
      for (const entry of entries) {
        if (entry === undefined) continue;
        found ??= [];
        found.push(entry);
      }
    };
    const own = this.#at(host, 0);
    if (own !== undefined) add(own.exact, own.suffix);
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = this.#at(host, dot + 1);
      if (parent !== undefined) add(parent.below, parent.suffix);
    }
    return found ?? NONE;
  }

  get isEmpty(): boolean {
    return this.#map.size === 0;
  }
}

/** A number below 4,096 that the same host always has: from its size, its first character and one near its end. */
function markOf(text: string, start: number): number {
  const size = text.length - start;
  const first = size > 0 ? text.charCodeAt(start) : 0;
  const late = size >= 5 ? text.charCodeAt(text.length - 5) : 0;
  return (size * 33 + first * 7 + late * 61) & 4095;
}

/** A host as a policy writes it: `=host` the host alone, `*.host` what is below it, `host` both. */
export function readPolicyHost(text: string): { readonly host: string; readonly reach: HostReach } | undefined {
  const reach = text.startsWith('=') ? 'exact' : text.startsWith('*.') ? 'below' : 'suffix';
  const host = policyHost(text.slice(reach === 'exact' ? 1 : reach === 'below' ? 2 : 0));
  return host === undefined ? undefined : { host, reach };
}

/** The host of an allow entry: without a sign in front it is one host and no more, so that it widens nothing by accident. */
export function readAllowedHost(text: string): ReturnType<typeof readPolicyHost> {
  return readPolicyHost(/^[=*]/.test(text) ? text : `=${text}`);
}

/** The canonical form of a host that somebody wrote into a policy, or undefined where it is not one. */
function policyHost(text: string): string | undefined {
  const key = keyFromHost(text);
  if ('key' in key) return comparableHost(key.key);
  if (key.problem === 'single_label') return /^[a-z0-9_-]+$/i.test(text) ? text.toLowerCase() : undefined;
  return key.problem === 'ip_address' ? URL.parse(`http://${text}/`)?.hostname : undefined;
}
