/** Host entries beside each other: which reaches what another one reaches. */
import type { HostEntry } from './documents.ts';
import { type HostReach, readPolicyHost } from './url/host-map.ts';
import { isAtPlace, withoutLastSlash } from './url/paths.ts';
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

/** The places at which alone an entry counts, without a slash at their ends; undefined for the whole host. */
export function countingPaths({ paths }: HostEntry): readonly string[] | undefined {
  return paths?.map((path) => withoutLastSlash(path.toLowerCase()));
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
    return read === undefined ? [] : [{ entry, ...read }];
  });
}

/** Whether everything that `inner` reaches is reached by `outer`. */
export function covers(outer: Omit<PlacedHost, 'entry'>, inner: Omit<PlacedHost, 'entry'>): boolean {
  if (outer.reach === 'exact') return inner.reach === 'exact' && inner.host === outer.host;
  if (inner.host === outer.host) return outer.reach === 'suffix' || inner.reach === 'below';
  return inner.host.endsWith(`.${outer.host}`);
}
