/** Warnings about valid settings in a licensee's policy file that weaken the shipped policy. */
import { isPublicSuffix } from '../domain/public-suffix.ts';
import { exceptionEffect, rangeRemarks } from './address-exceptions.ts';
import { diffFields } from './diff.ts';
import type { HostEntry, LicenseeDocument, PolicyDocument, RuleEntry, ShippedPolicy } from './documents.ts';
import {
  countsWherever,
  coveringEntries,
  denies,
  hostIndex,
  isAskedBefore,
  nearestFirst,
  placedHosts,
  READ,
  WRITE,
} from './host-overlap.ts';
import { readAllowedHost, readPolicyHost } from './url/host-map.ts';

type Merged = Pick<PolicyDocument, 'hosts' | 'rules' | 'page_types' | 'allow' | 'excuses' | 'address_exceptions'>;

/** Returns one sentence for each warning. @throws PagegateError policy_invalid, for an address exception whose range is not valid */
export function licenseeWarnings(shipped: ShippedPolicy, licensee: LicenseeDocument, merged: Merged): string[] {
  const groups = weakenedGroups(shipped.hosts, licensee);
  return [
    ...weakenedRules(shipped.rules, merged.rules),
    ...changedRules(shipped.rules, merged.rules),
    ...weakenedPages(shipped, merged),
    ...merged.excuses.map(({ rule, host, port, note }) => {
      const place = port === undefined ? host : `${host}, port ${port}`;
      return `The guard rule "${rule}" does not hold for ${place}${ending(note)}`;
    }),
    ...openedAddresses(merged),
    ...groups.values(),
    ...weakenedHosts(
      shipped.hosts.filter((entry) => !isCoveredByGroup(entry, groups, licensee)),
      merged.hosts,
    ),
    ...weakeningHosts(
      shipped.hosts.filter(({ group = '' }) => !groups.has(group)),
      merged.hosts,
    ),
    ...weakenedDenials(shipped.hosts, merged.hosts),
    ...merged.allow.flatMap(({ id, host }) => wideHost(`The allow entry "${id}"`, host, readAllowedHost(host))),
    ...merged.excuses.flatMap(({ rule, host }) => wideHost(`The excuse of "${rule}"`, host, readAllowedHost(host))),
    ...(licensee.add?.places ?? []).flatMap(({ hosts }) =>
      hosts.flatMap((host) => wideHost('A place of "add.places"', host, readPolicyHost(host))),
    ),
  ];
}

/** The end of a sentence: a period, or the licensee's note if there is one. */
function ending(note: string | undefined): string {
  return note === undefined ? '.' : `: ${note}`;
}

/** Warns about address exceptions and the guard rules that they lift. An exception without effect is a finding of `policy check` instead. */
function openedAddresses({ address_exceptions: exceptions, rules }: Merged): string[] {
  return exceptions.flatMap(({ cidr, note }) => {
    const { rules: ids, isFixed } = exceptionEffect(cidr, rules);
    if (isFixed || ids.length === 0) return [];
    const names = ids.map((id) => `"${id}"`).join(', ');
    const what = ids.length === 1 ? `The guard rule ${names} does` : `The guard rules ${names} do`;
    const remarks = rangeRemarks(cidr);
    const about = remarks.length === 0 ? '' : ` (${remarks.join(', ')})`;
    return [`${what} not hold for ${cidr}${about}${ending(note)}`];
  });
}

/** Warns about rules that no longer deny what the shipped rules deny. */
function weakenedRules(shipped: readonly RuleEntry[], merged: readonly RuleEntry[]): string[] {
  const kept = new Map(merged.map((rule) => [rule.id, rule]));
  return shipped.flatMap(({ id, kind, verdict }) => {
    const rule = kept.get(id);
    if (rule === undefined && (kind === 'guard' || verdict === 'deny'))
      return [`The ${kind} rule "${id}" is disabled: nothing else catches what it is there for.`];
    const isLess = rule !== undefined && verdict === 'deny' && rule.verdict !== 'deny';
    return isLess ? [`The ${kind} rule "${id}" flags what it denies as shipped.`] : [];
  });
}

/** Warns about rules with changed parameters: only a person can judge whether the change weakens the rule. */
function changedRules(shipped: readonly RuleEntry[], merged: readonly RuleEntry[]): string[] {
  const kept = new Map(merged.map((rule) => [rule.id, rule]));
  return shipped.flatMap((rule) => {
    const changed = diffFields(rule, kept.get(rule.id) ?? rule)
      .filter(({ name, before }) => !NOT_PARAMETERS.has(name) && !isEmptyList(before))
      .map(({ name }) => name);
    return changed.length === 0 ? [] : [`The ${rule.kind} rule "${rule.id}" is changed: ${changed.join(', ')}.`];
  });
}

/** Fields of a rule that are not parameters. A weaker verdict has its own warning. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set(['verdict', 'note']);

/** A list that ships empty is meant for the licensee's entries, which weaken nothing. */
function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function weakenedPages(shipped: ShippedPolicy, { page_types: pageTypes }: Merged): string[] {
  const verdicts = new Map(pageTypes.map(({ type, verdict }) => [type, verdict]));
  return shipped.page_types
    .filter(({ type, verdict }) => verdict === 'deny' && verdicts.get(type) !== 'deny')
    .map(({ type }) => `Verified pages of the type "${type}" get ${verdicts.get(type)}; as shipped they are denied.`);
}

/** Returns a warning for each group that is disabled or flagged as a whole, by the group's name. */
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

/** Whether the warning about its group is enough for an entry. */
function isCoveredByGroup(
  { id, group = '' }: HostEntry,
  groups: ReadonlyMap<string, string>,
  { disable = [], override }: LicenseeDocument,
): boolean {
  if (!groups.has(group)) return false;
  const isNamed = disable.includes(id) || Object.hasOwn(override?.hosts ?? {}, id);
  return !isNamed || disable.includes(`group:${group}`);
}

/** Warns about shipped entries that deny less after a change or a removal. */
function weakenedHosts(shipped: readonly HostEntry[], merged: readonly HostEntry[]): string[] {
  const after = hostIndex(merged, nearestFirst);
  const kept = new Map(merged.map((entry) => [entry.id, entry]));
  return placedHosts(shipped).flatMap((placed) => {
    const { entry } = placed;
    const now = kept.get(entry.id);
    if (now === entry) return [];
    const less = [READ, WRITE].filter((kind) => {
      if (kind.of(entry) !== 'deny') return false;
      const others = coveringEntries(after, placed).filter((other) => countsWherever(other.entry, entry, kind));
      return others.map((other) => kind.of(other.entry)).find((verdict) => verdict !== undefined) !== 'deny';
    });
    const isPartial = (kind: typeof READ): boolean => now !== undefined && kind.of(now) === 'deny';
    return [
      ...sentence(
        less.filter((kind) => !isPartial(kind)),
        entry,
        'no longer denied, as they are by what ships',
      ),
      ...sentence(less.filter(isPartial), entry, 'denied in fewer places than by what ships'),
    ];
  });
}

/** Returns one sentence about reads, writes or both of an entry; nothing if `kinds` is empty. */
function sentence(kinds: readonly (typeof READ)[], { id }: HostEntry, what: string): string[] {
  return kinds.length === 0 ? [] : [`The ${kinds.map(({ name }) => name).join(' and ')} of ${id} are ${what}.`];
}

/** Warns about entries of the licensee that flag and take precedence over a shipped entry that denies. */
function weakeningHosts(shipped: readonly HostEntry[], merged: readonly HostEntry[]): string[] {
  const before = hostIndex(shipped, nearestFirst);
  const isShipped = new Set(shipped.map(({ id }) => id));
  return placedHosts(merged.filter(({ id }) => !isShipped.has(id))).flatMap((placed) => {
    const { entry } = placed;
    return [READ, WRITE].flatMap((kind) => {
      if (kind.of(entry) !== 'flag') return [];
      const outer = coveringEntries(before, placed).find(
        (other) => denies(other.entry, kind) && isAskedBefore(placed, other),
      );
      if (outer === undefined) return [];
      return [`The host entry "${entry.id}" weakens "${outer.entry.id}", which ships and denies its ${kind.name}.`];
    });
  });
}

/** Warns about denials of the licensee that do not apply everywhere on their hosts, because a more specific shipped entry flags. */
function weakenedDenials(shipped: readonly HostEntry[], merged: readonly HostEntry[]): string[] {
  const isShipped = new Set(shipped.map(({ id }) => id));
  const added = hostIndex(
    merged.filter(({ id }) => !isShipped.has(id)),
    nearestFirst,
  );
  const nearer = new Map<string, Set<string>>();
  for (const placed of placedHosts(merged.filter(({ id }) => isShipped.has(id)))) {
    for (const kind of [READ, WRITE].filter(({ of }) => of(placed.entry) === 'flag')) {
      for (const other of coveringEntries(added, placed)) {
        const { id } = other.entry;
        if (denies(other.entry, kind) && isAskedBefore(placed, other))
          nearer.set(id, (nearer.get(id) ?? new Set()).add(placed.entry.id));
      }
    }
  }
  return [...nearer].map(([id, entries]) => {
    const names = [...entries].slice(0, NAMED_MAX).join(', ');
    const more = entries.size > NAMED_MAX ? ` and ${entries.size - NAMED_MAX} more` : '';
    return `The host entry "${id}" does not deny where what ships stands nearer and flags: ${names}${more}.`;
  });
}

/** The maximum number of entries that one warning names. */
const NAMED_MAX = 5;

/** Warns about an entry that covers a whole public suffix. */
function wideHost(what: string, text: string, read: ReturnType<typeof readPolicyHost>): string[] {
  if (read === undefined || read.reach === 'exact' || !isPublicSuffix(read.host, { private: true })) return [];
  return [`${what} reaches every site under the public suffix ${read.host}: "${text}".`];
}
