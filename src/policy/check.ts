/** Entries that can never match, because an earlier one stands in front of them: found without a single request. */

import { parseUrl } from '../domain/canonical-url.ts';
import type { HostEntry, PolicyDocument } from './documents.ts';
import { contains, parseRange, type Range } from './guards/addresses.ts';
import { guardVerdict } from './layers/guards.ts';
import type { Policy } from './policy.ts';
import { NO_EVIDENCE, type Verdict } from './types.ts';
import { type HostReach, readAllowedHost, readPolicyHost } from './url/host-map.ts';
import { isBelow, withoutLastSlash } from './url/paths.ts';
import { Subject } from './url/subject.ts';

export interface PolicyFinding {
  readonly id: string;
  /** The entry that stands in front, where it is one entry. */
  readonly by?: string;
  readonly message: string;
}

/** Everything in a policy that has no effect, entry by entry. A policy without findings can still be wrong: see `policy test`. */
export function checkPolicy(policy: Policy): PolicyFinding[] {
  const { document } = policy;
  return [
    ...shadowedHosts(document.hosts),
    ...shadowedAllows(policy),
    ...shadowedTokens(policy),
    ...idleRules(document),
    ...idleExceptions(document),
  ];
}

interface PlacedHost {
  readonly id: string;
  readonly host: string;
  readonly reach: HostReach;
  readonly denies: (method: string) => boolean;
  readonly verdicts: string;
}

function placed(entries: readonly HostEntry[]): PlacedHost[] {
  return entries.flatMap((entry) => {
    const read = readPolicyHost(entry.host);
    if (read === undefined) return [];
    const reads = entry.reads ?? entry.verdict;
    const writes = entry.writes ?? entry.verdict;
    const denies = (method: string): boolean =>
      (['GET', 'HEAD', 'OPTIONS'].includes(method) ? reads : writes) === 'deny';
    return [{ id: entry.id, ...read, denies, verdicts: `${reads} ${writes}` }];
  });
}

/** Whether everything that `inner` reaches is reached by `outer`. */
function covers(outer: Pick<PlacedHost, 'host' | 'reach'>, inner: Pick<PlacedHost, 'host' | 'reach'>): boolean {
  if (outer.reach === 'exact') return inner.reach === 'exact' && inner.host === outer.host;
  if (inner.host === outer.host) return outer.reach === 'suffix' || inner.reach === 'below';
  return inner.host.endsWith(`.${outer.host}`);
}

/** Host entries that change nothing: a wider entry already says the same. */
function shadowedHosts(entries: readonly HostEntry[]): PolicyFinding[] {
  const hosts = placed(entries);
  const wide = hosts.filter((entry) => entry.reach !== 'exact');
  return hosts.flatMap((inner) => {
    const outer = wide.find((entry) => entry !== inner && covers(entry, inner) && entry.verdicts === inner.verdicts);
    if (outer === undefined) return [];
    const message = `the host entry "${inner.id}" changes nothing: "${outer.id}" covers it with the same verdict`;
    return [{ id: inner.id, by: outer.id, message }];
  });
}

/** Allow entries that no request gets to: their host or their method is denied before. */
function shadowedAllows(policy: Policy): PolicyFinding[] {
  const { document } = policy;
  const hosts = placed(document.hosts);
  const seen: { id: string; host: string; reach: HostReach; path: string; methods: ReadonlySet<string> }[] = [];
  const findings: PolicyFinding[] = [];
  const never = (id: string, by: string, why: string): void => {
    findings.push({ id, by, message: `the allow entry "${id}" is never reached: ${why}` });
  };
  for (const entry of document.allow) {
    const read = readAllowedHost(entry.host);
    if (read === undefined) continue;
    const methods = new Set(entry.methods.map((method) => method.toUpperCase()));
    const denying = hosts.find((host) => covers(host, read) && [...methods].every((method) => host.denies(method)));
    if (denying !== undefined) never(entry.id, denying.id, `the host entry "${denying.id}" denies before it`);
    const guard = denyingGuard(policy, read.host);
    if (guard !== undefined) never(entry.id, guard.id, `the guard rule "${guard.id}" denies before it`);
    const twin = seen.find(
      (other) =>
        covers(other, read) &&
        isBelow(entry.path, withoutLastSlash(other.path)) &&
        [...methods].every((m) => other.methods.has(m)),
    );
    if (twin !== undefined) {
      const message = `the allow entry "${entry.id}" changes nothing: "${twin.id}" allows more`;
      findings.push({ id: entry.id, by: twin.id, message });
    }
    seen.push({ id: entry.id, ...read, path: entry.path, methods });
  }
  return findings;
}

/** The guard rule that denies everything on a host. */
function denyingGuard(policy: Policy, host: string): Verdict | undefined {
  const url = parseUrl(`https://${host}/`);
  if (url === undefined) return undefined;
  const said = guardVerdict(policy, new Subject({ url, method: 'GET' }, NO_EVIDENCE, policy.tokens));
  return said?.verdict === 'deny' ? said : undefined;
}

/** Tokens of a flagging rule that a denying rule asks for in the same way, so that the flag is never given. */
function shadowedTokens(policy: Policy): PolicyFinding[] {
  const { document, tokens } = policy;
  const anywhere = new Map<number, string>();
  for (const rule of document.rules) {
    if (rule.kind !== 'pattern' || rule.verdict !== 'deny') continue;
    for (const condition of rule.when ?? []) {
      const isPlain = condition.at === undefined || condition.at === 'any';
      if (condition.segment === undefined || !isPlain || condition.also !== undefined || condition.not_in) continue;
      const list = tokens.ordinal(condition.segment);
      if (!anywhere.has(list)) anywhere.set(list, rule.id);
    }
  }
  const findings: PolicyFinding[] = [];
  for (const rule of document.rules) {
    const lists = (rule.when ?? []).flatMap((condition) =>
      condition.segment === undefined ? [] : [tokens.ordinal(condition.segment)],
    );
    if (rule.kind !== 'pattern' || rule.verdict !== 'flag' || lists.length === 0) continue;
    const shadowed: string[] = [];
    let by: string | undefined;
    for (const { token, lists: own } of tokens.entries()) {
      const before = own.find((list) => anywhere.has(list));
      if (before === undefined || !own.some((list) => lists.includes(list))) continue;
      shadowed.push(token);
      by ??= anywhere.get(before);
    }
    if (shadowed.length === 0 || by === undefined) continue;
    const some = shadowed.slice(0, 5).join(', ');
    findings.push({
      id: rule.id,
      by,
      message: `the rule "${rule.id}" never flags ${shadowed.length} of its tokens (${some}): "${by}" denies them`,
    });
  }
  return findings;
}

/** Rules that cannot match as they are written, and categories that nobody is in. */
function idleRules(document: PolicyDocument): PolicyFinding[] {
  const known = new Set(document.categories.flatMap((category) => [category.id, category.name]));
  return document.rules.flatMap((rule) => {
    if (rule.check !== 'category') return [];
    const categories = rule.categories ?? [];
    const findings = categories
      .filter((name) => !known.has(name))
      .map((name) => ({
        id: rule.id,
        message: `the rule "${rule.id}" names the category "${name}", which the taxonomy does not have`,
      }));
    // As shipped category_flag waits for the licensee's list.
    if (rule.threats !== true && categories.length === 0 && rule.id !== 'category_flag') {
      findings.push({ id: rule.id, message: `the rule "${rule.id}" names no category, so it never matches` });
    }
    return findings;
  });
}

/** Address exceptions outside everything that a guard denies, or inside what no exception excuses. */
function idleExceptions(document: PolicyDocument): PolicyFinding[] {
  const ranges = (isExcusable: boolean): Range[] =>
    document.rules
      .filter((rule) => rule.check === 'address' && (rule.excusable === true) === isExcusable)
      .flatMap((rule) => (rule.ranges ?? []).map(parseRange));
  const excusable = ranges(true);
  const fixed = ranges(false);
  return document.addressExceptions.flatMap(({ cidr }) => {
    const range = parseRange(cidr);
    const base = { family: range.family, words: range.words };
    const nothing = (why: string): PolicyFinding[] => [
      { id: cidr, message: `the address exception ${cidr} has no effect: ${why}` },
    ];
    if (fixed.some((other) => contains(other, base)))
      return nothing('its addresses are denied by a rule that excuses nothing');
    if (!excusable.some((other) => contains(other, base))) return nothing('no guard rule denies its addresses');
    return [];
  });
}
