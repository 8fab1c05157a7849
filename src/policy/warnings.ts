/** What is legal in a licensee's own file, takes something away, and should be known to a person. */
import { isPublicSuffix } from '../domain/public-suffix.ts';
import type { HostEntry, PolicyDocument, RuleEntry, ShippedPolicy } from './documents.ts';
import { READ, WRITE } from './host-cover.ts';
import { HostMap, readAllowedHost, readPolicyHost } from './url/host-map.ts';

interface Merged extends Pick<PolicyDocument, 'hosts' | 'allow' | 'excuses'> {
  readonly disabledRules: readonly RuleEntry[];
}

export function licenseeWarnings(shipped: ShippedPolicy, merged: Merged): string[] {
  return [
    ...merged.disabledRules
      .filter(({ kind }) => kind === 'guard')
      .map(({ id }) => `The guard rule "${id}" is disabled: nothing else catches what it is there for.`),
    ...merged.excuses.map(({ rule, host, port, note }) => {
      const place = port === undefined ? host : `${host}, port ${port}`;
      return `The guard rule "${rule}" does not hold for ${place}${note === undefined ? '.' : `: ${note}`}`;
    }),
    ...weakened(shipped.hosts, merged.hosts),
    ...merged.allow.flatMap(({ id, host }) => wideHost(`The allow entry "${id}"`, host, readAllowedHost(host))),
  ];
}

/** Denials that ship and that a nearer entry, a change or a removal makes less of. */
function weakened(shipped: readonly HostEntry[], own: readonly HostEntry[]): string[] {
  const plain = (entries: readonly HostEntry[]): HostEntry[] =>
    entries.filter(({ paths, not_in }) => !paths && !not_in);
  const [before, after] = [hostIndex(plain(shipped)), hostIndex(plain(own))];
  const isShipped = new Map(shipped.map((entry) => [entry.id, entry]));
  const isKept = new Map(own.map((entry) => [entry.id, entry]));
  const warnings: string[] = [];
  for (const entry of plain(shipped)) {
    if (isKept.get(entry.id) === entry) continue;
    for (const kind of [READ, WRITE]) {
      if (kind.of(entry) !== 'deny' || covering(after, entry).some((other) => kind.of(other) === 'deny')) continue;
      warnings.push(`The ${kind.name} of ${entry.host} are no longer denied, as they are by what ships.`);
    }
  }
  for (const entry of plain(own)) {
    if (isShipped.has(entry.id)) continue;
    for (const kind of [READ, WRITE]) {
      const outer = covering(before, entry).find((other) => kind.of(other) === 'deny');
      if (outer === undefined || kind.of(entry) !== 'flag') continue;
      warnings.push(`The host entry "${entry.id}" weakens "${outer.id}", which ships and denies its ${kind.name}.`);
    }
  }
  return warnings;
}

function hostIndex(entries: readonly HostEntry[]): HostMap<readonly HostEntry[]> {
  const map = new HostMap<readonly HostEntry[]>();
  for (const entry of entries) {
    const read = readPolicyHost(entry.host);
    if (read !== undefined) map.add(read.host, read.reach, [...(map.add(read.host, read.reach, []) ?? []), entry]);
  }
  return map;
}

/** The entries that reach what an entry reaches. */
function covering(map: HostMap<readonly HostEntry[]>, entry: HostEntry): HostEntry[] {
  const read = readPolicyHost(entry.host);
  if (read === undefined) return [];
  return map.all(read.reach === 'exact' ? read.host : `a.${read.host}`).flat();
}

function wideHost(what: string, text: string, read: ReturnType<typeof readPolicyHost>): string[] {
  if (read === undefined || read.reach === 'exact' || !isPublicSuffix(read.host, { private: true })) return [];
  return [`${what} reaches every site under ${read.host}: "${text}" is a wildcard on a public suffix.`];
}
