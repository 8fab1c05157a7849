/** Host entries beside each other: which reaches what another one reaches. */
import type { HostEntry } from './documents.ts';
import { type HostReach, readPolicyHost } from './url/host-map.ts';

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
