/** What is legal in a licensee's own file, takes something away, and should be known to a person. */
import { isPublicSuffix } from '../domain/public-suffix.ts';
import { openedBy, remarksOn } from './address-exceptions.ts';
import type { HostEntry, LicenseeDocument, PolicyDocument, RuleEntry, ShippedPolicy } from './documents.ts';
import { READ, WRITE } from './host-overlap.ts';
import { HostMap, readAllowedHost, readPolicyHost } from './url/host-map.ts';

type Merged = Pick<PolicyDocument, 'hosts' | 'rules' | 'pageTypes' | 'allow' | 'excuses' | 'addressExceptions'>;

/** @throws PagegateError policy_invalid, for an address exception whose range is not valid */
export function licenseeWarnings(shipped: ShippedPolicy, own: LicenseeDocument, merged: Merged): string[] {
  const groups = weakenedGroups(shipped.hosts, own);
  return [
    ...weakenedRules(shipped.rules, merged.rules),
    ...weakenedPages(shipped, merged),
    ...merged.excuses.map(({ rule, host, port, note }) => {
      const place = port === undefined ? host : `${host}, port ${port}`;
      return `The guard rule "${rule}" does not hold for ${place}${ending(note)}`;
    }),
    ...openedAddresses(merged),
    ...groups.values(),
    ...weakened(
      shipped.hosts.filter(({ group = '' }) => !groups.has(group)),
      merged.hosts,
    ),
    ...merged.allow.flatMap(({ id, host }) => wideHost(`The allow entry "${id}"`, host, readAllowedHost(host))),
  ];
}

/** A sentence's end, with the licensee's own words where there are any. */
function ending(note: string | undefined): string {
  return note === undefined ? '.' : `: ${note}`;
}

/** Address exceptions, with the guard rules that do not hold for them. One that opens nothing is found as an entry without effect. */
function openedAddresses({ addressExceptions, rules }: Merged): string[] {
  return addressExceptions.flatMap(({ cidr, note }) => {
    const { rules: ids, isFixed } = openedBy(cidr, rules);
    if (isFixed || ids.length === 0) return [];
    const names = ids.map((id) => `"${id}"`).join(', ');
    const what = ids.length === 1 ? `The guard rule ${names} does` : `The guard rules ${names} do`;
    const remarks = remarksOn(cidr);
    const about = remarks.length === 0 ? '' : ` (${remarks.join(', ')})`;
    return [`${what} not hold for ${cidr}${about}${ending(note)}`];
  });
}

/** Rules that no longer deny what they deny as shipped. */
function weakenedRules(shipped: readonly RuleEntry[], own: readonly RuleEntry[]): string[] {
  const kept = new Map(own.map((rule) => [rule.id, rule]));
  return shipped.flatMap(({ id, kind, verdict }) => {
    const rule = kept.get(id);
    if (rule === undefined && (kind === 'guard' || verdict === 'deny'))
      return [`The ${kind} rule "${id}" is disabled: nothing else catches what it is there for.`];
    const isLess = rule !== undefined && verdict === 'deny' && rule.verdict !== 'deny';
    return isLess ? [`The ${kind} rule "${id}" flags what it denies as shipped.`] : [];
  });
}

function weakenedPages(shipped: ShippedPolicy, { pageTypes }: Merged): string[] {
  const own = new Map(pageTypes.map(({ type, verdict }) => [type, verdict]));
  return shipped.pageTypes
    .filter(({ type, verdict }) => verdict === 'deny' && own.get(type) !== 'deny')
    .map(({ type }) => `Verified pages of the type "${type}" get ${own.get(type)}; as shipped they are denied.`);
}

/** Groups that are disabled or get another verdict as a whole, each with one line about it. */
function weakenedGroups(
  shipped: readonly HostEntry[],
  { disable = [], override }: LicenseeDocument,
): Map<string, string> {
  const lines = new Map<string, string>();
  for (const [name, hosts] of Map.groupBy(shipped, ({ group = '' }) => group)) {
    const denied = hosts.filter((entry) => READ.of(entry) === 'deny' || WRITE.of(entry) === 'deny').length;
    const change = override?.groups?.[name];
    const isOff = disable.includes(`group:${name}`);
    const isLess = change !== undefined && [change.verdict, change.reads, change.writes].includes('flag');
    if (denied === 0 || (!isOff && !isLess)) continue;
    lines.set(
      name,
      `The group "${name}" is ${isOff ? 'disabled' : 'flagged'}: ${denied} of its hosts are denied as shipped.`,
    );
  }
  return lines;
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
