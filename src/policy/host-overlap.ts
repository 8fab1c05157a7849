/** Compares host entries: which entry covers what another one covers. */
import type { HostEntry } from './documents.ts';
import { HostMap, type HostReach, readPolicyHost } from './url/host-map.ts';
import { foldPath, isAtPlace, placesMeet } from './url/paths.ts';
import { countingContexts } from './words/word-contexts.ts';

export interface PlacedHost {
  readonly entry: HostEntry;
  readonly host: string;
  readonly reach: HostReach;
  /** The folded paths that the entry is limited to; the root (`''`) for the whole host. */
  readonly places: readonly string[];
}

type Reach = Pick<PlacedHost, 'host' | 'reach'>;

/** Reads or writes. */
export interface MethodKind {
  readonly name: 'reads' | 'writes';
  /** Returns the verdict of an entry for this kind of method. */
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

/** Whether an entry applies to its whole host. */
export function isWholeHost({ paths, not_in }: HostEntry): boolean {
  return paths === undefined && not_in === undefined;
}

/** Returns the paths that an entry is limited to, folded like the paths of URLs; undefined for the whole host. */
export function countingPaths({ paths }: HostEntry): readonly string[] | undefined {
  return paths?.map(foldPath);
}

/**
 * Returns a bit mask of the contexts in which an entry applies to reads; undefined for all contexts. `not_in` is ignored if every path
 * of the entry begins with a fixed segment: such a path was listed on purpose. A path like `/*` does not name one.
 */
export function hostContexts({ paths, not_in }: HostEntry): number | undefined {
  if (not_in === undefined || paths?.every((path) => !path.startsWith('/*'))) return undefined;
  return countingContexts(not_in, []);
}

/** Whether the outer entry applies at every path and context of the inner one, for a kind of method. Ignores the hosts. */
export function countsWherever(outer: HostEntry, inner: HostEntry, kind: MethodKind): boolean {
  const places = countingPaths(outer);
  const paths = countingPaths(inner) ?? [''];
  if (places !== undefined && !paths.every((path) => places.some((place) => isAtPlace(path, place)))) return false;
  const contexts = kind === READ ? hostContexts(outer) : undefined;
  return contexts === undefined || ((hostContexts(inner) ?? ~0) & ~contexts) === 0;
}

/** Returns the entries with their parsed hosts and paths. Skips entries whose host is not valid. */
export function placedHosts(entries: readonly HostEntry[]): PlacedHost[] {
  return entries.flatMap((entry) => {
    const read = readPolicyHost(entry.host);
    return read === undefined ? [] : [{ entry, ...read, places: countingPaths(entry) ?? [''] }];
  });
}

/** Groups entries by host and reach. Node.js 20, which compiles policies too, has no `Map.groupBy`. */
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

/** A value that was computed from all entries of one host and reach. */
export type OfHost<T> = Reach & { readonly value: T };

/** Builds a map for {@link covering}: `together` computes one value from the entries of each host and reach. */
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

/** Appends an entry to those of the same host and reach, in a map for {@link covering}. */
export function addTo<T>(map: HostMap<OfHost<T[]>>, { host, reach }: Reach, entry: T): void {
  const added: OfHost<T[]> = { host, reach, value: [] };
  const same = map.add(host, reach, added) ?? added;
  same.value.push(entry);
  if (same !== added) map.add(host, reach, same);
}

/** Sorts the entries of one host by precedence: entries with paths come before entries for the whole host. */
export function nearestFirst(same: readonly PlacedHost[]): readonly PlacedHost[] {
  const places = same.filter(({ entry }) => entry.paths !== undefined);
  const whole = same.filter(({ entry }) => entry.paths === undefined);
  return [...places, ...whole];
}

/** Returns the values of all hosts that include every host of an entry, the nearest first. */
export function covering<T>(map: HostMap<OfHost<T>>, { host, reach }: Reach): readonly T[] {
  // `*.host` stands for all subdomains: no entry has such a name.
  return map
    .all(reach === 'exact' ? host : `*.${host}`)
    .filter((outer) => reach !== 'suffix' || outer.reach !== 'below' || outer.host !== host)
    .map(({ value }) => value);
}

/** Returns the entries that cover all hosts of an entry, the nearest host first. */
export function coveringEntries(map: HostMap<OfHost<readonly PlacedHost[]>>, entry: Reach): readonly PlacedHost[] {
  const lists = covering(map, entry);
  return lists.length === 1 ? lists[0]! : lists.flat();
}

/** Returns how specific a path is: its length without `*`; -1 for the whole host, which is the least specific. */
export function nearness(place: string | undefined): number {
  return place === undefined ? -1 : place.replaceAll('*', '').length;
}

/** Whether the inner entry takes precedence over the outer one, which covers its host, at some path where both apply. */
export function isAskedBefore(inner: PlacedHost, outer: PlacedHost): boolean {
  const isNearer = inner.host !== outer.host || (inner.reach !== 'suffix' && outer.reach === 'suffix');
  const near = (entry: PlacedHost, place: string): number => nearness(entry.entry.paths && place);
  return inner.places.some((place) =>
    outer.places.some((top) => placesMeet(place, top) && (isNearer || near(inner, place) > near(outer, top))),
  );
}
