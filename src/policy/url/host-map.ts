/** Hosts by exact name or by suffix: the longest name that matches wins, the exact one before the suffix. */
import { DOT } from '../../bytes/ascii.ts';
import { keyFromHost } from '../../domain/host-key.ts';

/**
 * A host without its leading `www.` labels, for comparing hosts with each other; `www.com` keeps its own. Unlike a key it needs no
 * public suffix list: both sides of every comparison go through it.
 */
export function comparableHost(host: string): string {
  let bare = host;
  while (bare.charCodeAt(3) === DOT && bare.startsWith('www.') && bare.includes('.', 4)) bare = bare.slice(4);
  return bare;
}

/** How far an entry reaches: the host alone, the host and everything below it, or only what is below. */
export type HostReach = 'exact' | 'suffix' | 'below';

const MARKS = 65_536;
const MAPS_MAX = 8;

/** Which of several maps may know a host: one look at its labels spares most hosts, which none knows, a search in each. */
export class HostFilter {
  /** For each mark of a host the maps, as bits, that have a host with this mark. */
  readonly #maps = new Uint8Array(MARKS);
  #count = 0;
  // The host that was asked about last, and the answer.
  #host: string | undefined;
  #found = 0;

  /** The bit of one map more. */
  join(): number {
    return 1 << (this.#count++ % MAPS_MAX);
  }

  add(host: string, map: number): void {
    this.#maps[markOf(host, 0)]! |= map;
    this.#host = undefined;
  }

  /** The maps that may know the host or one above it, as bits. */
  mapsOf(host: string): number {
    if (host === this.#host) return this.#found;
    let found = this.#maps[markOf(host, 0)]!;
    for (let at = 0; at < host.length; at++) {
      if (host.charCodeAt(at) === 0x2e) found |= this.#maps[markOf(host, at + 1)]!;
    }
    this.#host = host;
    this.#found = found;
    return found;
  }
}

const NONE: readonly never[] = Object.freeze([]);

type Reaches<T> = { [reach in HostReach]?: T };

/** Values by host; what is found is the nearest entry. */
export class HostMap<T> {
  readonly #map = new Map<string, Reaches<T>>();
  readonly #filter: HostFilter;
  readonly #bit: number;

  /** `filter` is shared by maps that are asked about the same hosts. */
  constructor(filter = new HostFilter()) {
    this.#filter = filter;
    this.#bit = filter.join();
  }

  /** Adds a host. Answers the entry that was there before. */
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

  /** The nearest entry for a host in canonical form. */
  find(host: string): T | undefined {
    if (!this.#mayKnow(host)) return undefined;
    const own = this.#map.get(host);
    let found = own?.exact ?? own?.suffix;
    for (let dot = host.indexOf('.'); dot >= 0 && found === undefined; dot = host.indexOf('.', dot + 1)) {
      const parent = this.#map.get(host.slice(dot + 1));
      found = parent?.below ?? parent?.suffix;
    }
    return found;
  }

  /** Every entry for a host, the nearest first. */
  all(host: string): readonly T[] {
    if (!this.#mayKnow(host)) return NONE;
    const own = this.#map.get(host);
    let found = own === undefined ? NONE : together(NONE, own.exact, own.suffix);
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const parent = this.#map.get(host.slice(dot + 1));
      if (parent !== undefined) found = together(found, parent.below, parent.suffix);
    }
    return found;
  }

  get isEmpty(): boolean {
    return this.#map.size === 0;
  }
}

function together<T>(found: readonly T[], first: T | undefined, second: T | undefined): readonly T[] {
  if (first === undefined && second === undefined) return found;
  return [...found, first, second].filter((entry) => entry !== undefined);
}

/** A number below {@link MARKS} that the same host always has: from its size, its first characters and one near its end. */
function markOf(text: string, start: number): number {
  const size = text.length - start;
  const first = size > 0 ? text.charCodeAt(start) : 0;
  const second = size > 1 ? text.charCodeAt(start + 1) : 0;
  const late = size >= 5 ? text.charCodeAt(text.length - 5) : 0;
  return (Math.imul(size * 961 + first * 31 + second, 40_503) + late * 1_021) & (MARKS - 1);
}

/** How a host must be written, for those who wrote something else. */
export const HOST_FORM =
  'write a name or an address alone, without scheme, port and path, like "example.com" or "*.example.com"';

/** A host as a policy writes it: `=host` the host alone, `*.host` what is below it, `host` both. */
export function readPolicyHost(text: string): { readonly host: string; readonly reach: HostReach } | undefined {
  const reach = text.startsWith('=') ? 'exact' : text.startsWith('*.') ? 'below' : 'suffix';
  // What is below is read as one such host: nothing is below an address, and below `www.` is less than beside it.
  const host = reach === 'below' ? policyHost(`a.${text.slice(2)}`)?.slice(2) : policyHost(text.replace(/^=/, ''));
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
