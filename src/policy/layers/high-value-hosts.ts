/** The first layer: hosts that stand on the policy's list. */
import { type HostEntry, invalid } from '../documents.ts';
import { countingPaths, hostContexts } from '../host-overlap.ts';
import type { Verdict } from '../types.ts';
import { type HostFilter, HostMap, readPolicyHost } from '../url/host-map.ts';
import { isAtPlace } from '../url/paths.ts';
import { type Ask, verdictOf } from './layer.ts';
import type { PatternLayer } from './pattern-rules.ts';

/** A host entry, compiled. */
export interface HostPolicy {
  readonly entry: HostEntry;
  /** The host without the sign in front, canonical. */
  readonly name: string;
  readonly reads: Verdict | undefined;
  readonly writes: Verdict | undefined;
  /** Places at which alone it counts, without a slash at their ends; undefined for the whole host. */
  readonly paths: readonly string[] | undefined;
  /** The contexts of a URL in which it counts, as bits; undefined for all. */
  readonly contexts: number | undefined;
}

/** @throws PagegateError policy_invalid */
export function compileHosts(entries: readonly HostEntry[], filter: HostFilter): HostMap<readonly HostPolicy[]> {
  const map = new HostMap<readonly HostPolicy[]>(filter);
  for (const entry of entries) {
    const { id, paths } = entry;
    const read = readPolicyHost(entry.host);
    if (read === undefined) throw invalid(id, `The host "${entry.host}" of "${id}" is not a host.`);
    const verdict = (name: 'deny' | 'flag' | undefined): Verdict | undefined =>
      name === undefined ? undefined : verdictOf(name, 'high_value_hosts', id, entry.note);
    const compiled: HostPolicy = {
      entry,
      name: read.host,
      reads: verdict(entry.reads ?? entry.verdict),
      writes: verdict(entry.writes ?? entry.verdict),
      paths: countingPaths(entry),
      contexts: hostContexts(entry),
    };
    const others = map.add(read.host, read.reach, []) ?? [];
    const twin = others.find((other) => other.paths === undefined && paths === undefined);
    if (twin !== undefined) throw invalid(id, `"${id}" and "${twin.entry.id}" are the same host.`);
    map.add(read.host, read.reach, [...others, compiled]);
  }
  return map;
}

/** The nearest entry that says something about the method. */
export const hostVerdict: Ask<{ readonly hosts: HostMap<readonly HostPolicy[]>; readonly patterns: PatternLayer }> = (
  { hosts, patterns },
  subject,
  all,
) => {
  const nearest = hosts.all(subject.host);
  if (nearest.length === 0) return undefined;
  for (const entries of nearest) {
    for (const { name, reads, writes, paths, contexts } of entries) {
      const verdict = subject.isRead ? reads : writes;
      if (verdict === undefined) continue;
      if (paths !== undefined && !paths.some((top) => subject.paths.some((path) => isAtPlace(path, top)))) continue;
      // What is sent off is no reading matter.
      const isExcused =
        contexts !== undefined && subject.isRead && (contexts & (1 << patterns.contextOf(subject, name))) === 0;
      if (isExcused) continue;
      all?.push(verdict);
      return verdict;
    }
  }
  return undefined;
};
