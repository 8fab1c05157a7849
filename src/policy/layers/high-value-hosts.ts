/** The first layer: the policy's list of high-value hosts. */
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

/** A compiled host entry for reads or for writes. An entry with several paths is compiled once for each path. */
interface HostPolicy {
  /** The canonical host, without a leading `=` or `*.`. */
  readonly name: string;
  readonly verdict: Verdict;
  /** The folded path that the entry is limited to; undefined for the whole host. */
  readonly path: string | undefined;
  /** Bit mask of the contexts in which the entry applies; undefined for all. */
  readonly contexts: number | undefined;
}

/** All entries of one host and reach, compiled for each kind of method, the most specific first. */
export interface HostPolicies {
  readonly entries: readonly HostEntry[];
  readonly reads: readonly HostPolicy[];
  readonly writes: readonly HostPolicy[];
}

/** Compiles the host entries, with a step for each host. @throws PagegateError policy_invalid */
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

function compileKind(entries: readonly HostEntry[], host: string, kind: MethodKind): HostPolicy[] {
  const compiled = entries.flatMap((entry): HostPolicy[] => {
    const name = kind.of(entry);
    if (name === undefined) return [];
    const verdict = verdictOf(name, 'high_value_hosts', entry.id, entry.note);
    // A write is never reading matter, so contexts do not matter.
    const contexts = kind === READ ? hostContexts(entry) : undefined;
    return (countingPaths(entry) ?? [undefined]).map((path) => ({ name: host, verdict, path, contexts }));
  });
  return compiled.sort(nearestFirst);
}

/** Compares entries of one host: the longer path comes first, the whole host last. On a tie, the entry that denies comes first. */
function nearestFirst(one: HostPolicy, other: HostPolicy): number {
  return nearness(other.path) - nearness(one.path) || Number(isDenial(other)) - Number(isDenial(one));
}

const isDenial = ({ verdict }: HostPolicy): boolean => verdict.verdict === 'deny';

/** Returns the verdict of the most specific entry that matches the request. */
export const hostVerdict: Ask<{ readonly hosts: HostMap<HostPolicies>; readonly patterns: PatternLayer }> = (
  { hosts, patterns },
  subject,
  all,
) => {
  const nearest = hosts.all(subject.host);
  if (nearest.length === 0) return undefined;
  for (const { reads, writes } of nearest) {
    for (const { name, verdict, path, contexts } of subject.isRead ? reads : writes) {
      if (path !== undefined && !subject.paths.some((folded) => isAtPlace(folded, path))) continue;
      if (contexts !== undefined && (contexts & (1 << patterns.contextOf(subject, name))) === 0) continue;
      all?.push(verdict);
      return verdict;
    }
  }
  return undefined;
};
