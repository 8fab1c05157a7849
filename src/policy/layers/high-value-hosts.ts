/** The first layer: hosts that stand on the policy's list. */
import { type HostEntry, invalid } from '../documents.ts';
import { countingPaths, hostContexts } from '../host-overlap.ts';
import type { Verdict } from '../types.ts';
import { HOST_FORM, type HostFilter, HostMap, readPolicyHost } from '../url/host-map.ts';
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
  /** The place at which alone it counts, folded; undefined for the whole host. An entry with several paths is compiled once for each. */
  readonly path: string | undefined;
  /** The contexts of a URL in which it counts, as bits; undefined for all. */
  readonly contexts: number | undefined;
}

/** @throws PagegateError policy_invalid */
export function compileHosts(entries: readonly HostEntry[], filter: HostFilter): HostMap<readonly HostPolicy[]> {
  const map = new HostMap<readonly HostPolicy[]>(filter);
  const lists = new Map<string, HostPolicy[]>();
  for (const { read, compiled } of entries.flatMap(compileHost)) {
    const key = `${read.reach} ${read.host}`;
    const same = lists.get(key) ?? [];
    if (same.length === 0) {
      lists.set(key, same);
      map.add(read.host, read.reach, same);
    }
    same.push(compiled);
  }
  for (const same of lists.values()) {
    const [first, twin] = same.filter(({ path }) => path === undefined).map(({ entry }) => entry.id);
    if (first !== undefined && twin !== undefined) throw invalid(twin, `"${twin}" and "${first}" are the same host.`);
    same.sort(nearestFirst);
  }
  return map;
}

interface Compiled {
  readonly read: NonNullable<ReturnType<typeof readPolicyHost>>;
  readonly compiled: HostPolicy;
}

function compileHost(entry: HostEntry): Compiled[] {
  const { id } = entry;
  const read = readPolicyHost(entry.host);
  if (read === undefined) throw invalid(id, `The host "${entry.host}" of "${id}" is not a host: ${HOST_FORM}.`);
  const verdict = (name: 'deny' | 'flag' | undefined): Verdict | undefined =>
    name === undefined ? undefined : verdictOf(name, 'high_value_hosts', id, entry.note);
  const common = {
    entry,
    name: read.host,
    reads: verdict(entry.reads ?? entry.verdict),
    writes: verdict(entry.writes ?? entry.verdict),
    contexts: hostContexts(entry),
  };
  return (countingPaths(entry) ?? [undefined]).map((path) => ({ read, compiled: { ...common, path } }));
}

/** Of one host: a longer place is nearer than a shorter one and the whole host; of two that are equally near, the one that denies. */
function nearestFirst(one: HostPolicy, other: HostPolicy): number {
  return fixedLength(other) - fixedLength(one) || denials(other) - denials(one);
}

const fixedLength = ({ path }: HostPolicy): number => (path === undefined ? -1 : path.replaceAll('*', '').length);

const denials = ({ reads, writes }: HostPolicy): number =>
  [reads, writes].filter((said) => said?.verdict === 'deny').length;

/** The nearest entry that says something about the method. */
export const hostVerdict: Ask<{ readonly hosts: HostMap<readonly HostPolicy[]>; readonly patterns: PatternLayer }> = (
  { hosts, patterns },
  subject,
  all,
) => {
  const nearest = hosts.all(subject.host);
  if (nearest.length === 0) return undefined;
  for (const entries of nearest) {
    for (const { name, reads, writes, path, contexts } of entries) {
      const verdict = subject.isRead ? reads : writes;
      if (verdict === undefined) continue;
      if (path !== undefined && !subject.paths.some((own) => isAtPlace(own, path))) continue;
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
