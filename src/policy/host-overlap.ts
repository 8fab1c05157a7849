/** Host entries beside each other: which reaches what another one reaches. */
import type { HostEntry } from './documents.ts';
import { HostMap, type HostReach, readPolicyHost } from './url/host-map.ts';
import { foldPath, isAtPlace } from './url/paths.ts';
import { countingContexts } from './words/word-contexts.ts';

export interface PlacedHost {
  readonly entry: HostEntry;
  readonly host: string;
  readonly reach: HostReach;
}

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

/** Entries by host, for {@link covering}. */
export function hostIndex(entries: readonly HostEntry[]): HostMap<readonly HostEntry[]> {
  const map = new HostMap<HostEntry[]>();
  for (const entry of entries) {
    const read = readPolicyHost(entry.host);
    if (read === undefined) continue;
    const same: HostEntry[] = [];
    const before = map.add(read.host, read.reach, same) ?? [];
    before.push(entry);
    map.add(read.host, read.reach, before);
  }
  return map;
}

/** The entries that reach what an entry reaches, the nearest host first. */
export function covering(map: HostMap<readonly HostEntry[]>, entry: HostEntry): HostEntry[] {
  const read = readPolicyHost(entry.host);
  if (read === undefined) return [];
  return map.all(read.reach === 'exact' ? read.host : `a.${read.host}`).flat();
}

/** Whether an entry is asked before another one, which reaches its host, somewhere where both count. */
export function standsBefore(entry: HostEntry, other: HostEntry): boolean {
  const places = countingPaths(entry) ?? [''];
  const tops = countingPaths(other) ?? [''];
  const [read, outer] = [readPolicyHost(entry.host), readPolicyHost(other.host)];
  const isNearer = read?.host !== outer?.host || (read?.reach !== 'suffix' && outer?.reach === 'suffix');
  return places.some((place) =>
    tops.some((top) => (isAtPlace(place, top) && (isNearer || place !== top)) || (isNearer && isAtPlace(top, place))),
  );
}

export function placedHosts(entries: readonly HostEntry[]): PlacedHost[] {
  return entries.flatMap((entry) => {
    const read = readPolicyHost(entry.host);
    return read === undefined ? [] : [{ entry, ...read }];
  });
}

/** Whether everything that `inner` reaches is reached by `outer`. */
export function covers(outer: Omit<PlacedHost, 'entry'>, inner: Omit<PlacedHost, 'entry'>): boolean {
  if (outer.reach === 'exact') return inner.reach === 'exact' && inner.host === outer.host;
  if (inner.host === outer.host) return outer.reach === 'suffix' || inner.reach === 'below';
  return inner.host.endsWith(`.${outer.host}`);
}
