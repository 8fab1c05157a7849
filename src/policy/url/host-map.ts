/** Maps hosts by exact name or by suffix. The longest name that matches wins, and an exact match wins over a suffix. */
import { DOT } from '../../bytes/ascii.ts';
import { keyFromHost } from '../../domain/host-key.ts';

/**
 * Returns a host without its leading `www.` labels, for comparing hosts with each other. `www.com` keeps its own. Unlike a domain, the
 * result needs no public suffix list, because both sides of every comparison are treated alike.
 */
export function comparableHost(host: string): string {
  let bare = host;
  while (bare.charCodeAt(3) === DOT && bare.startsWith('www.') && bare.includes('.', 4)) bare = bare.slice(4);
  return bare;
}

/** Which hosts an entry is for: the host alone, the host and everything below it, or only what is below it. */
export type HostReach = 'exact' | 'suffix' | 'below';

const MARKS = 65_536;
const MAPS_MAX = 8;

/** A filter that several maps share. One pass over the labels of a host shows which maps may have it, and spares the search in all others. */
export class HostFilter {
  /** For each value of {@link markOf}, a bit mask of the maps that have a host with it. */
  readonly #maps = new Uint8Array(MARKS);
  #count = 0;
  // The last host and its result.
  #lastHost: string | undefined;
  #lastFound = 0;

  /** Adds a map and returns its bit. */
  join(): number {
    return 1 << (this.#count++ % MAPS_MAX);
  }

  add(host: string, map: number): void {
    this.#maps[markOf(host, 0)]! |= map;
    this.#lastHost = undefined;
  }

  /** Returns a bit mask of the maps that may have the host or one above it. */
  mapsOf(host: string): number {
    if (host === this.#lastHost) return this.#lastFound;
    let found = this.#maps[markOf(host, 0)]!;
    for (let at = 0; at < host.length; at++) {
      if (host.charCodeAt(at) === 0x2e) found |= this.#maps[markOf(host, at + 1)]!;
    }
    this.#lastHost = host;
    this.#lastFound = found;
    return found;
  }
}

const NONE: readonly never[] = Object.freeze([]);

type Reaches<T> = { [reach in HostReach]?: T };

/** Values by host. The nearest entry is found. */
export class HostMap<T> {
  readonly #map = new Map<string, Reaches<T>>();
  readonly #filter: HostFilter;
  readonly #bit: number;

  /** @param filter shared by maps that are searched for the same hosts */
  constructor(filter = new HostFilter()) {
    this.#filter = filter;
    this.#bit = filter.join();
  }

  /** Adds the value of a host. Returns the one that it replaces, if any. */
  add(host: string, reach: HostReach, value: T): T | undefined {
    const entries = this.#map.get(host) ?? {};
    const before = entries[reach];
    entries[reach] = value;
    this.#map.set(host, entries);
    this.#filter.add(host, this.#bit);
    return before;
  }

  #mayKnow(host: string): boolean {
    return this.#map.size > 0 && (this.#filter.mapsOf(host) & this.#bit) !== 0;
  }

  /** Returns the value of the nearest entry for a host in canonical form. */
  find(host: string): T | undefined {
    if (!this.#mayKnow(host)) return undefined;
    const atHost = this.#map.get(host);
    let found = atHost?.exact ?? atHost?.suffix;
    for (let dot = host.indexOf('.'); dot >= 0 && found === undefined; dot = host.indexOf('.', dot + 1)) {
      const parent = this.#map.get(host.slice(dot + 1));
      found = parent?.below ?? parent?.suffix;
    }
    return found;
  }

  /** Returns the values of all entries for a host, nearest first. */
  all(host: string): readonly T[] {
    if (!this.#mayKnow(host)) return NONE;
    const atHost = this.#map.get(host);
    let found = atHost === undefined ? NONE : withBoth(NONE, atHost.exact, atHost.suffix);
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = this.#map.get(host.slice(dot + 1));
      if (parent !== undefined) found = withBoth(found, parent.below, parent.suffix);
    }
    return found;
  }

  get isEmpty(): boolean {
    return this.#map.size === 0;
  }
}

function withBoth<T>(found: readonly T[], first: T | undefined, second: T | undefined): readonly T[] {
  if (first === undefined && second === undefined) return found;
  return [...found, first, second].filter((entry) => entry !== undefined);
}

/** Returns a hash below {@link MARKS} of the text from `start` on: of its length, its first two characters and one near its end. */
function markOf(text: string, start: number): number {
  const size = text.length - start;
  const first = size > 0 ? text.charCodeAt(start) : 0;
  const second = size > 1 ? text.charCodeAt(start + 1) : 0;
  const late = size >= 5 ? text.charCodeAt(text.length - 5) : 0;
  return (Math.imul(size * 961 + first * 31 + second, 40_503) + late * 1_021) & (MARKS - 1);
}

/** How a host must be written; a part of messages about one that is not. */
export const HOST_FORM =
  'write a name or an address alone, without scheme, port and path, like "example.com" or "*.example.com"';

/** Parses a host as a policy writes it: `=host` is the host alone, `*.host` what is below it, `host` both. Undefined if it is not a host. */
export function readPolicyHost(text: string): { readonly host: string; readonly reach: HostReach } | undefined {
  const reach = text.startsWith('=') ? 'exact' : text.startsWith('*.') ? 'below' : 'suffix';
  // Parses an example of a host below: none is below an address, and `*.www.example.com` must not become `*.example.com`.
  const host = reach === 'below' ? policyHost(`a.${text.slice(2)}`)?.slice(2) : policyHost(text.replace(/^=/, ''));
  return host === undefined ? undefined : { host, reach };
}

/** Parses the host of an allow entry. Without a prefix it is that one host only, so that it widens nothing by accident. */
export function readAllowedHost(text: string): ReturnType<typeof readPolicyHost> {
  return readPolicyHost(/^[=*]/.test(text) ? text : `=${text}`);
}

/** Returns the canonical form of a host in a policy; undefined if it is not a host. */
function policyHost(text: string): string | undefined {
  const key = keyFromHost(text);
  if ('key' in key) return comparableHost(key.key);
  if (key.problem === 'single_label') return /^[a-z0-9_-]+$/i.test(text) ? text.toLowerCase() : undefined;
  return key.problem === 'ip_address' ? URL.parse(`http://${text}/`)?.hostname : undefined;
}
