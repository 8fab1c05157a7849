/** The first layer: hosts that stand on the policy's list. */
import type { HostEntry } from '../documents.ts';
import type { Verdict } from '../types.ts';
import { HostMap, readPolicyHost } from '../url/host-map.ts';
import { type Ask, invalid, verdictOf } from './layer.ts';

/** A host entry, compiled. */
export interface HostPolicy {
  readonly entry: HostEntry;
  readonly reads: Verdict | undefined;
  readonly writes: Verdict | undefined;
}

/** @throws PagegateError policy_invalid */
export function compileHosts(entries: readonly HostEntry[]): HostMap<HostPolicy> {
  const map = new HostMap<HostPolicy>();
  for (const entry of entries) {
    const { id } = entry;
    const read = readPolicyHost(entry.host);
    if (read === undefined) throw invalid(id, `The host "${entry.host}" of "${id}" is not a host.`);
    const verdict = (name: 'deny' | 'flag' | undefined): Verdict | undefined =>
      name === undefined ? undefined : verdictOf(name, 'high_value_hosts', id, entry.note);
    const compiled = {
      entry,
      reads: verdict(entry.reads ?? entry.verdict),
      writes: verdict(entry.writes ?? entry.verdict),
    };
    const before = map.add(read.host, read.reach, compiled);
    if (before !== undefined) throw invalid(id, `"${id}" and "${before.entry.id}" are the same host.`);
  }
  return map;
}

export const hostVerdict: Ask = ({ hosts }, { host, isRead }, all) => {
  const entry = hosts.find(host);
  const verdict = isRead ? entry?.reads : entry?.writes;
  if (verdict !== undefined) all?.push(verdict);
  return verdict;
};
