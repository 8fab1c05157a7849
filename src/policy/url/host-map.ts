/** Maps hosts by exact name or by suffix. The longest name that matches wins, and an exact match wins over a suffix. */
import { DOT } from '../../bytes/ascii.ts';
import { HASH_PRIME, HASH_SEED } from '../../bytes/fnv.ts';
import { keyFromHost } from '../../domain/host-key.ts';
import { isDigit } from './characters.ts';

/**
 * Returns a host without its leading `www.` labels, for comparing hosts with each other. `www.com` keeps its own. Unlike a domain, the
 * result needs no public suffix list, because both sides of every comparison are treated alike.
 */
export function comparableHost(host: string): string {
  let bare = host;
  while (bare.length > 4 && bare.charCodeAt(3) === DOT && bare.startsWith('www.') && bare.includes('.', 4))
    bare = bare.slice(4);
  return bare;
}

/** Which hosts an entry is for: the host alone, the host and everything below it, or only what is below it. */
export type HostReach = 'exact' | 'suffix' | 'below';

const MARKS = 65_536;
const MAPS_MAX = 8;

/** Reads one host at a time, in one pass. Shows which of the maps that share it may have the host or a parent, and spares the search in all others. */
export class HostFilter {
  /** For each hash of a name, a bit mask of the maps that have a name with it. */
  readonly #maps = new Uint8Array(MARKS);
  #mapCount = 0;
  #host: string | undefined;
  /** Bit mask of the maps that may have the host or a parent of it. */
  maps = 0;
  /** The host and its parents, the shortest first: where each begins in the host, and the maps that may have it. Entries from `count` on are stale. */
  readonly starts: number[] = [];
  readonly mapsAt: number[] = [];
  count = 0;
  hasDigit = false;

  /** Adds a map and returns its bit. */
  join(): number {
    return 1 << (this.#mapCount++ % MAPS_MAX);
  }

  add(host: string, map: number): void {
    let hash = HASH_SEED;
    for (let at = host.length - 1; at >= 0; at--) hash = Math.imul(hash ^ host.charCodeAt(at), HASH_PRIME);
    this.#maps[markOf(hash)]! |= map;
    this.#host = undefined;
  }

  /** Reads a host, unless it is the one that was read last. */
  read(host: string): this {
    if (host === this.#host) return this;
    this.#host = host;
    this.maps = 0;
    this.count = 0;
    this.hasDigit = false;
    let hash = HASH_SEED;
    for (let at = host.length - 1; at >= 0; at--) {
      const code = host.charCodeAt(at);
      if (code === DOT) this.#addName(at + 1, hash);
      else if (isDigit(code)) this.hasDigit = true;
      hash = Math.imul(hash ^ code, HASH_PRIME);
    }
    this.#addName(0, hash);
    return this;
  }

  #addName(start: number, hash: number): void {
    const maps = this.#maps[markOf(hash)]!;
    this.starts[this.count] = start;
    this.mapsAt[this.count++] = maps;
    this.maps |= maps;
  }
}

/** Returns a number below {@link MARKS} for the hash of a name. */
function markOf(hash: number): number {
  return (hash ^ (hash >>> 16)) & (MARKS - 1);
}

const NONE: readonly never[] = Object.freeze([]);

/** The values of one name in a map. */
interface Reaches<T> {
  readonly values: { readonly [reach in HostReach]?: T };
  /** The values for the host of this name, nearest first. */
  readonly own: readonly T[];
  /** The values for hosts below it, nearest first. */
  readonly below: readonly T[];
}

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
    const before = this.#map.get(host)?.values;
    const values = { ...before, [reach]: value };
    const { exact, suffix, below } = values;
    this.#map.set(host, { values, own: present(exact, suffix), below: present(below, suffix) });
    this.#filter.add(host, this.#bit);
    return before?.[reach];
  }

  /** Returns the value of the nearest entry for a host in canonical form. */
  find(host: string): T | undefined {
    return this.all(host)[0];
  }

  /** Returns the values of all entries for a host, nearest first. */
  all(host: string): readonly T[] {
    if (this.#map.size === 0) return NONE;
    const { maps, mapsAt, starts, count } = this.#filter.read(host);
    if ((maps & this.#bit) === 0) return NONE;
    let found: readonly T[] = NONE;
    for (let at = count - 1; at >= 0; at--) {
      if ((mapsAt[at]! & this.#bit) === 0) continue;
      const start = starts[at]!;
      const reaches = this.#map.get(host.slice(start));
      if (reaches === undefined) continue;
      const values = start === 0 ? reaches.own : reaches.below;
      if (values.length > 0) found = found.length === 0 ? values : [...found, ...values];
    }
    return found;
  }

  get isEmpty(): boolean {
    return this.#map.size === 0;
  }
}

function present<T>(...values: readonly (T | undefined)[]): readonly T[] {
  return values.filter((value) => value !== undefined);
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
