/** Host entries beside each other: which reaches what another one reaches. */
import type { HostEntry } from './documents.ts';
import { HostMap, type HostReach, readPolicyHost } from './url/host-map.ts';
import { foldPath, isAtPlace } from './url/paths.ts';
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
interface MethodKind {
  readonly name: 'reads' | 'writes';
  of(entry: HostEntry): 'deny' | 'flag' | undefined;
}

export const READ: MethodKind = { name: 'reads', of: (entry) => entry.reads ?? entry.verdict };
export const WRITE: MethodKind = { name: 'writes', of: (entry) => entry.writes ?? entry.verdict };

/** The kind of a method. */
export function kindOf(method: string): MethodKind {
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

/** Entries of the same host and reach, together. */
export function byHost<T extends Reach>(entries: readonly T[]): Iterable<readonly T[]> {
  return Map.groupBy(entries, ({ reach, host }) => `${reach} ${host}`).values();
}

/** Entries by host, for {@link covering}. */
export function hostIndex(entries: readonly HostEntry[]): HostMap<readonly PlacedHost[]> {
  const map = new HostMap<readonly PlacedHost[]>();
  for (const same of byHost(placedHosts(entries))) {
    // Places are nearer than the whole host.
    const places = same.filter(({ entry }) => entry.paths !== undefined);
    const whole = same.filter(({ entry }) => entry.paths === undefined);
    map.add(same[0]!.host, same[0]!.reach, [...places, ...whole]);
  }
  return map;
}

/** The entries that reach what an entry reaches, the nearest host first. */
export function covering(map: HostMap<readonly PlacedHost[]>, entry: Reach): readonly PlacedHost[] {
  const lists = map.all(anyHostOf(entry));
  return lists.length === 1 ? lists[0]! : lists.flat();
}

/** A host that an entry reaches, below its own name where it reaches that. */
export function anyHostOf({ host, reach }: Reach): string {
  return reach === 'exact' ? host : `a.${host}`;
}

/** Whether an entry is asked before another one, which reaches its host, somewhere where both count. */
export function standsBefore(one: PlacedHost, other: PlacedHost): boolean {
  const isNearer = one.host !== other.host || (one.reach !== 'suffix' && other.reach === 'suffix');
  return one.places.some((place) =>
    other.places.some(
      (top) => (isAtPlace(place, top) && (isNearer || place !== top)) || (isNearer && isAtPlace(top, place)),
    ),
  );
}
