/** The first layer: hosts that stand on the policy's list. */
import type { Steps } from '../../steps.ts';
import { type HostEntry, invalidPolicy } from '../documents.ts';
import {
  byHost,
  countingPaths,
  hostContexts,
  type MethodKind,
  nearness,
  type PlacedHost,
  READ,
  WRITE,
} from '../host-overlap.ts';
import type { Verdict } from '../types.ts';
import { HOST_FORM, type HostFilter, HostMap, readPolicyHost } from '../url/host-map.ts';
import { isAtPlace } from '../url/paths.ts';
import { type Ask, verdictOf } from './layer.ts';
import type { PatternLayer } from './pattern-rules.ts';

/** What a host entry says about reads or about writes, compiled. An entry with several paths is compiled once for each. */
interface HostPolicy {
  /** The host without the sign in front, canonical. */
  readonly name: string;
  readonly verdict: Verdict;
  /** The place at which alone it counts, folded; undefined for the whole host. */
  readonly path: string | undefined;
  /** The contexts of a URL in which it counts, as bits; undefined for all. */
  readonly contexts: number | undefined;
}

/** All that is said of one host, for each kind of method the nearest first. */
export interface HostPolicies {
  readonly entries: readonly HostEntry[];
  readonly reads: readonly HostPolicy[];
  readonly writes: readonly HostPolicy[];
}

/** A step for each host. @throws PagegateError policy_invalid */
export function* compileHosts(entries: readonly HostEntry[], filter: HostFilter): Steps<HostMap<HostPolicies>> {
  const map = new HostMap<HostPolicies>(filter);
  for (const placed of byHost(entries.map(readHost))) {
    const [{ host, reach }] = placed;
    const same = placed.map(({ entry }) => entry);
    const [first, twin] = same.filter(({ paths }) => paths === undefined).map(({ id }) => id);
    if (first !== undefined && twin !== undefined)
      throw invalidPolicy(twin, `"${twin}" and "${first}" are the same host.`);
    map.add(host, reach, {
      entries: same,
      reads: compileKind(same, host, READ),
      writes: compileKind(same, host, WRITE),
    });
    yield;
  }
  return map;
}

/** @throws PagegateError policy_invalid */
function readHost(entry: HostEntry): Pick<PlacedHost, 'entry' | 'host' | 'reach'> {
  const read = readPolicyHost(entry.host);
  if (read === undefined)
    throw invalidPolicy(entry.id, `The host "${entry.host}" of "${entry.id}" is not a host: ${HOST_FORM}.`);
  return { entry, ...read };
}

function compileKind(entries: readonly HostEntry[], name: string, kind: MethodKind): HostPolicy[] {
  const compiled = entries.flatMap((entry): HostPolicy[] => {
    const said = kind.of(entry);
    if (said === undefined) return [];
    const verdict = verdictOf(said, 'high_value_hosts', entry.id, entry.note);
    // What is sent off is no reading matter.
    const contexts = kind === READ ? hostContexts(entry) : undefined;
    return (countingPaths(entry) ?? [undefined]).map((path) => ({ name, verdict, path, contexts }));
  });
  return compiled.sort(nearestFirst);
}

/** Of one host: a longer place is nearer than a shorter one and the whole host; of two that are equally near, the one that denies. */
function nearestFirst(one: HostPolicy, other: HostPolicy): number {
  return nearness(other.path) - nearness(one.path) || Number(isDenial(other)) - Number(isDenial(one));
}

const isDenial = ({ verdict }: HostPolicy): boolean => verdict.verdict === 'deny';

/** The nearest entry that says something about the method. */
export const hostVerdict: Ask<{ readonly hosts: HostMap<HostPolicies>; readonly patterns: PatternLayer }> = (
  { hosts, patterns },
  subject,
  all,
) => {
  const nearest = hosts.all(subject.host);
  if (nearest.length === 0) return undefined;
  for (const { reads, writes } of nearest) {
    for (const { name, verdict, path, contexts } of subject.isRead ? reads : writes) {
      if (path !== undefined && !subject.paths.some((own) => isAtPlace(own, path))) continue;
      if (contexts !== undefined && (contexts & (1 << patterns.contextOf(subject, name))) === 0) continue;
      all?.push(verdict);
      return verdict;
    }
  }
  return undefined;
};
