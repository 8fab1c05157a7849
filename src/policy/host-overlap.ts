/** Host entries beside each other: which reaches what another one reaches. */
import type { HostEntry } from './documents.ts';
import { HostMap, type HostReach, readPolicyHost } from './url/host-map.ts';
import { foldPath, isAtPlace, placesMeet } from './url/paths.ts';
import { countingContexts } from './words/word-contexts.ts';

export interface PlacedHost {
  readonly entry: HostEntry;
  readonly host: string;
  readonly reach: HostReach;
  /** Places at which alone it counts, folded; the root for the whole host. */
  readonly places: readonly string[];
}

type Reach = Pick<PlacedHost, 'host' | 'reach'>;

/** A kind of method, and what an entry says about it. */
export interface MethodKind {
  readonly name: 'reads' | 'writes';
  of(entry: HostEntry): 'deny' | 'flag' | undefined;
}

export const READ: MethodKind = { name: 'reads', of: (entry) => entry.reads ?? entry.verdict };
export const WRITE: MethodKind = { name: 'writes', of: (entry) => entry.writes ?? entry.verdict };

export function methodKind(method: string): MethodKind {
  return ['GET', 'HEAD', 'OPTIONS'].includes(method) ? READ : WRITE;
}

export function denies(entry: HostEntry, kind: MethodKind): boolean {
  return kind.of(entry) === 'deny';
}

/** Whether an entry counts everywhere on its host. */
export function isWholeHost({ paths, not_in }: HostEntry): boolean {
  return paths === undefined && not_in === undefined;
}

/** The places at which alone an entry counts, folded as the paths of URLs are; undefined for the whole host. */
export function countingPaths({ paths }: HostEntry): readonly string[] | undefined {
  return paths?.map(foldPath);
}

/**
 * The contexts in which an entry counts for reads, as bits; undefined for all. A path that was listed by itself is meant, whatever it
 * announces; one that begins with any segment names none.
 */
export function hostContexts({ paths, not_in }: HostEntry): number | undefined {
  if (not_in === undefined || paths?.every((path) => !path.startsWith('/*'))) return undefined;
  return countingContexts(not_in, []);
}

/** Whether an entry counts wherever on its hosts another one does, for a kind of method. */
export function countsWherever(outer: HostEntry, inner: HostEntry, kind: MethodKind): boolean {
  const tops = countingPaths(outer);
  const paths = countingPaths(inner) ?? [''];
  if (tops !== undefined && !paths.every((path) => tops.some((top) => isAtPlace(path, top)))) return false;
  const contexts = kind === READ ? hostContexts(outer) : undefined;
  return contexts === undefined || ((hostContexts(inner) ?? ~0) & ~contexts) === 0;
}

export function placedHosts(entries: readonly HostEntry[]): PlacedHost[] {
  return entries.flatMap((entry) => {
    const read = readPolicyHost(entry.host);
    return read === undefined ? [] : [{ entry, ...read, places: countingPaths(entry) ?? [''] }];
  });
}

/** Entries of the same host and reach, together. Node.js 20, which compiles policies too, has no `Map.groupBy`. */
export function byHost<T extends Reach>(entries: Iterable<T>): Iterable<readonly [T, ...T[]]> {
  const lists = new Map<string, [T, ...T[]]>();
  for (const entry of entries) {
    const name = `${entry.reach} ${entry.host}`;
    const same = lists.get(name);
    if (same === undefined) lists.set(name, [entry]);
    else same.push(entry);
  }
  return lists.values();
}

/** What several entries of the same host and reach say together. */
export type OfHost<T> = Reach & { readonly value: T };

/** What the entries of each host and reach say together, for {@link covering}. */
export function hostIndex<T>(
  entries: readonly HostEntry[],
  together: (same: readonly PlacedHost[]) => T,
): HostMap<OfHost<T>> {
  const map = new HostMap<OfHost<T>>();
  for (const same of byHost(placedHosts(entries))) {
    const [{ host, reach }] = same;
    map.add(host, reach, { host, reach, value: together(same) });
  }
  return map;
}

/** Puts one more entry to those of the same host and reach, for {@link covering}. */
export function addTo<T>(map: HostMap<OfHost<T[]>>, { host, reach }: Reach, entry: T): void {
  const own: OfHost<T[]> = { host, reach, value: [] };
  const same = map.add(host, reach, own) ?? own;
  same.value.push(entry);
  if (same !== own) map.add(host, reach, same);
}

/** Entries of one host in the order in which they are asked: places are nearer than the whole host. */
export function nearestFirst(same: readonly PlacedHost[]): readonly PlacedHost[] {
  const places = same.filter(({ entry }) => entry.paths !== undefined);
  const whole = same.filter(({ entry }) => entry.paths === undefined);
  return [...places, ...whole];
}

/** What is said of hosts that hold all that an entry reaches, the nearest host first. */
export function covering<T>(map: HostMap<OfHost<T>>, { host, reach }: Reach): readonly T[] {
  // No entry names the host that stands here for all below.
  return map
    .all(reach === 'exact' ? host : `*.${host}`)
    .filter((outer) => reach !== 'suffix' || outer.reach !== 'below' || outer.host !== host)
    .map(({ value }) => value);
}

/** The entries that reach all that an entry reaches, the nearest host first. */
export function coveringEntries(map: HostMap<OfHost<readonly PlacedHost[]>>, entry: Reach): readonly PlacedHost[] {
  const lists = covering(map, entry);
  return lists.length === 1 ? lists[0]! : lists.flat();
}

/** How near a place is: `*` does not count. The whole host, without a place, is the furthest. */
export function nearness(place: string | undefined): number {
  return place === undefined ? -1 : place.replaceAll('*', '').length;
}

/** Whether an entry is asked before another one, which reaches its host, somewhere where both count. */
export function isAskedBefore(one: PlacedHost, other: PlacedHost): boolean {
  const isNearer = one.host !== other.host || (one.reach !== 'suffix' && other.reach === 'suffix');
  const near = (entry: PlacedHost, place: string): number => nearness(entry.entry.paths && place);
  return one.places.some((place) =>
    other.places.some((top) => placesMeet(place, top) && (isNearer || near(one, place) > near(other, top))),
  );
}
