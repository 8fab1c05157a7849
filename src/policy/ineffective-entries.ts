/** Finds policy entries without effect, mostly because an earlier entry always matches first. Needs no requests. */

import { parseUrl } from '../domain/canonical-url.ts';
import { exceptionEffect } from './address-exceptions.ts';
import type { AllowEntry, ExcuseEntry, HostEntry, PolicyDocument, RuleEntry } from './documents.ts';
import {
  addTo,
  covering,
  denies,
  hostIndex,
  isWholeHost,
  type MethodKind,
  methodKind,
  type OfHost,
  type PlacedHost,
  placedHosts,
  READ,
  WRITE,
} from './host-overlap.ts';
import { guardVerdict } from './layers/guard-rules.ts';
import type { Policy } from './policy.ts';
import { Subject } from './subject.ts';
import { NO_EVIDENCE, type Verdict } from './types.ts';
import { HostMap, readAllowedHost } from './url/host-map.ts';
import { isBelow, pathInUrl, withoutLastSlash } from './url/paths.ts';

export interface PolicyFinding {
  readonly id: string;
  /** The entry that takes precedence, if it is a single one. */
  readonly by?: string;
  readonly message: string;
}

/**
 * Returns a finding for every entry of a policy that has no effect. A policy without findings can still be wrong: see `policy test`.
 *
 * @param shipped the policy without the licensee's file. Its entries are not reported as shadowed.
 */
export function checkPolicy(policy: Policy, shipped?: Policy): PolicyFinding[] {
  const { document } = policy;
  const { hosts = [], rules = [] } = shipped?.document ?? {};
  const ids = new Set([...hosts, ...rules].map(({ id }) => id));
  return [
    ...[...shadowedHosts(document.hosts), ...shadowedTokens(policy)].filter(({ id }) => !ids.has(id)),
    ...(shipped === undefined ? [] : unusedTokens(document, shipped.document)),
    ...idleAllows(policy),
    ...idleRules(document, [...hosts, ...document.hosts]),
    ...idleExcuses(policy),
    ...idleExceptions(document),
  ];
}

/** Finds host entries that change nothing: without them, the next wider entry would give the same verdicts. */
function shadowedHosts(entries: readonly HostEntry[]): PolicyFinding[] {
  const verdictsOf = (entry: HostEntry): string => `${READ.of(entry)} ${WRITE.of(entry)}`;
  const map = hostIndex(entries, (same) => {
    const all = same.map(({ entry }) => entry);
    const parts = new Set(all.filter((entry) => !isWholeHost(entry)).map(verdictsOf));
    return { whole: all.find(isWholeHost), parts };
  });
  return placedHosts(entries).flatMap((placed) => {
    const inner = placed.entry;
    for (const { whole, parts } of covering(map, placed)) {
      if (whole === inner) continue;
      // An entry with other verdicts for a part of the host may take precedence in between.
      if (parts.size > 1 || (parts.size === 1 && !parts.has(verdictsOf(inner)))) break;
      if (whole === undefined) continue;
      if (verdictsOf(whole) !== verdictsOf(inner)) break;
      const [id, by] = [inner.id, whole.id];
      return [{ id, by, message: `the host entry "${id}" changes nothing: "${by}" covers it with the same verdict` }];
    }
    return [];
  });
}

/** Finds allow entries that no request reaches, because host, path or methods are denied earlier or can never match. */
function idleAllows(policy: Policy): PolicyFinding[] {
  const { document } = policy;
  const hosts = hostIndex(document.hosts, coverageOf);
  const seen = new HostMap<OfHost<AllowEntry[]>>();
  const findings: PolicyFinding[] = [];
  for (const entry of document.allow) {
    const { id, path, methods } = entry;
    const never = (why: string, by?: string): void => {
      const message = `the allow entry "${id}" is never reached: ${why}`;
      findings.push(by === undefined ? { id, message } : { id, by, message });
    };
    const read = readAllowedHost(entry.host);
    if (read === undefined) continue;
    const denying = denyingHost(covering(hosts, read), methods);
    if (denying !== undefined) never(`the host entry "${denying.id}" denies before it`, denying.id);
    const host = read.reach === 'exact' ? read.host : `a.${read.host}`;
    const guard = denyingGuard(policy, host, 'GET');
    if (guard !== undefined) never(`the guard rule "${guard.id}" denies before it`, guard.id);
    if (path.includes('*')) never(`"${path}" is a prefix, in which "*" is a character like others`);
    const inUrl = pathInUrl(path);
    if (inUrl !== undefined && !isBelow(inUrl, withoutLastSlash(path)))
      never(`in a URL "${path}" is the path "${inUrl}"`);
    for (const method of methods) {
      const rule = guard === undefined ? denyingGuard(policy, host, method.toUpperCase()) : undefined;
      if (rule !== undefined) never(`the guard rule "${rule.id}" denies the method ${method}`, rule.id);
    }
    const twins = covering(seen, read).map((others) => others.find((other) => allowsMore(other, entry)));
    const twin = twins.find((other) => other !== undefined);
    if (twin !== undefined) {
      const message = `the allow entry "${id}" changes nothing: "${twin.id}" allows more`;
      findings.push({ id, by: twin.id, message });
    }
    addTo(seen, read, entry);
  }
  return findings;
}

/** How the entries of one host and reach cover a kind of method. */
interface Coverage {
  /** The entry for the whole host. */
  readonly whole: HostEntry | undefined;
  /** Whether an entry for a part of the host does not deny. */
  readonly hasOpenPart: boolean;
}

function coverageOf(same: readonly PlacedHost[]): (kind: MethodKind) => Coverage {
  const of = (kind: MethodKind): Coverage => {
    const entries = same.map(({ entry }) => entry).filter((entry) => kind.of(entry) !== undefined);
    return {
      whole: entries.find(isWholeHost),
      hasOpenPart: entries.some((entry) => !isWholeHost(entry) && !denies(entry, kind)),
    };
  };
  const [reads, writes] = [of(READ), of(WRITE)];
  return (kind) => (kind === READ ? reads : writes);
}

/**
 * Returns the host entry that denies all the methods everywhere on a host.
 *
 * @param nearest coverage of the hosts that contain it, the nearest first
 */
function denyingHost(
  nearest: readonly ReturnType<typeof coverageOf>[],
  methods: readonly string[],
): HostEntry | undefined {
  const kinds = new Set(methods.map((method) => methodKind(method.toUpperCase())));
  let denying: HostEntry | undefined;
  for (const kind of kinds) {
    const coverages = nearest.map((of) => of(kind));
    const { whole, hasOpenPart = false } = coverages.find((one) => one.hasOpenPart || one.whole !== undefined) ?? {};
    if (whole === undefined || hasOpenPart || !denies(whole, kind)) return undefined;
    denying ??= whole;
  }
  return denying;
}

/** Whether the path and the methods of the outer allow entry include those of the inner one. */
function allowsMore(outer: AllowEntry, inner: AllowEntry): boolean {
  if (!isBelow(inner.path, withoutLastSlash(outer.path))) return false;
  const methods = new Set(outer.methods.map((method) => method.toUpperCase()));
  return inner.methods.every((method) => methods.has(method.toUpperCase()));
}

/** Returns the verdict of the guard rule that denies a method everywhere on a host; undefined if there is no such rule. */
function denyingGuard(policy: Policy, host: string, method: string): Verdict | undefined {
  const url = parseUrl(`https://${host}/`);
  if (url === undefined) return undefined;
  const verdict = guardVerdict(policy, new Subject({ url, method }, NO_EVIDENCE, policy.tokens));
  return verdict?.verdict === 'deny' ? verdict : undefined;
}

/** Finds tokens of a flagging rule that a denying rule matches at any position, so that the flag never applies. */
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
    for (const { token, lists: tokenLists } of tokens.entries()) {
      const denied = tokenLists.find((list) => anywhere.has(list));
      if (denied === undefined || !tokenLists.some((list) => lists.includes(list))) continue;
      shadowed.push(token);
      by ??= anywhere.get(denied);
    }
    if (shadowed.length === 0 || by === undefined) continue;
    const examples = shadowed.slice(0, 5).join(', ');
    findings.push({
      id: rule.id,
      by,
      message: `the rule "${rule.id}" never flags ${shadowed.length} of its tokens (${examples}): "${by}" denies them`,
    });
  }
  return findings;
}

/** Finds token lists of the licensee that no rule uses. */
function unusedTokens({ tokens, rules }: PolicyDocument, shipped: PolicyDocument): PolicyFinding[] {
  const values = rules.flatMap((rule) => [rule, ...(rule.when ?? [])]).flatMap((part) => Object.values(part));
  const used = new Set<unknown>(values);
  return Object.keys(tokens)
    .filter((name) => !Object.hasOwn(shipped.tokens, name) && !used.has(name))
    .map((name) => ({ id: name, message: `the token list "${name}" is asked for by no rule: name it in a condition` }));
}

/** Finds rules that name unknown groups or categories, or no category at all. */
function idleRules(document: PolicyDocument, hosts: readonly HostEntry[]): PolicyFinding[] {
  const known = new Set(document.categories.flatMap((category) => [category.id, category.name]));
  // The name of a disabled group is still valid.
  const groups = new Set(hosts.map(({ group }) => group));
  return document.rules.flatMap((rule) => {
    const unknown = (rule.groups ?? []).filter((name) => !groups.has(name));
    if (unknown.length > 0)
      return [{ id: rule.id, message: `the rule "${rule.id}" names groups that no host is in: ${unknown.join(', ')}` }];
    if (rule.check !== 'category') return [];
    const categories = rule.categories ?? [];
    const findings = categories
      .filter((name) => !known.has(name))
      .map((name) => ({
        id: rule.id,
        message: `the rule "${rule.id}" names the category "${name}", which the taxonomy does not have`,
      }));
    // The shipped rule category_flag has no categories: the licensee adds them.
    if (rule.threats !== true && categories.length === 0 && rule.id !== 'category_flag') {
      findings.push({ id: rule.id, message: `the rule "${rule.id}" names no category, so it never matches` });
    }
    return findings;
  });
}

/** Finds excuses without effect: the rule never matches the host, or another entry denies or excuses it anyway. */
function idleExcuses({ document, guards, tokens }: Policy): PolicyFinding[] {
  const hosts = hostIndex(document.hosts, coverageOf);
  const rules = new Map(document.rules.map((rule) => [rule.id, rule]));
  const seen = new Map<string, HostMap<OfHost<ExcuseEntry[]>>>();
  const idle = (excuse: ExcuseEntry, target: OfHost<unknown>): Omit<PolicyFinding, 'id'> | undefined => {
    const { rule: id, port } = excuse;
    const denying = denyingHost(covering(hosts, target), ['GET', 'POST']);
    if (denying !== undefined) return { by: denying.id, message: `the host entry "${denying.id}" denies before it` };
    const rule = rules.get(id)!;
    if (rule.check === 'port' && port !== undefined && rule.allowed?.includes(port) === true)
      return { message: `the rule "${id}" allows the port ${port} everywhere` };
    const guard = guards.find(({ verdict }) => verdict.id === id)!;
    const matches = ({ host }: Pick<OfHost<unknown>, 'host'>): boolean => {
      const url = parseUrl(`https://${host}/`);
      return url === undefined || guard.check(new Subject({ url, method: 'GET' }, NO_EVIDENCE, tokens));
    };
    if (isDecidedByHost(rule, target) && !matches(target))
      return { message: `the rule "${id}" does not ${rule.verdict} it` };
    const map = seen.get(id) ?? new HostMap();
    seen.set(id, map);
    const wider = covering(map, target)
      .flat()
      .find((other) => other.port === undefined || other.port === port);
    addTo(map, target, excuse);
    return wider === undefined ? undefined : { message: `the one for ${wider.host} excuses it` };
  };
  return document.excuses.flatMap((excuse) => {
    const { rule, host } = excuse;
    const read = readAllowedHost(host);
    const found = read === undefined ? undefined : idle(excuse, { ...read, value: undefined });
    if (found === undefined) return [];
    return [{ ...found, id: rule, message: `the excuse of "${rule}" for ${host} has no effect: ${found.message}` }];
  });
}

/** Checks that depend only on the host. */
const HOST_CHECKS: ReadonlySet<string> = new Set([
  'address',
  'host_name',
  'spelled_address',
  'dns_tunnel',
  'idn_invalid',
  'idn_confusable',
]);

/**
 * Whether testing one host is enough to know if a rule matches the hosts of an excuse. For an excuse of subdomains, only the end of their
 * names is known.
 */
function isDecidedByHost({ check = '', suffixes = [] }: RuleEntry, { host, reach }: OfHost<unknown>): boolean {
  if (reach === 'exact') return HOST_CHECKS.has(check);
  return check === 'host_name' && !suffixes.some((suffix) => suffix.endsWith(`.${host}`));
}

/** Finds address exceptions outside every range that a guard rule denies, or inside a range that cannot be excused. */
function idleExceptions(document: PolicyDocument): PolicyFinding[] {
  return document.address_exceptions.flatMap(({ cidr }) => {
    const { rules, isFixed } = exceptionEffect(cidr, document.rules);
    const nothing = (why: string): PolicyFinding[] => [
      { id: cidr, message: `the address exception ${cidr} has no effect: ${why}` },
    ];
    if (isFixed) return nothing('its addresses are denied by a rule that excuses nothing');
    return rules.length === 0 ? nothing('no guard rule denies its addresses') : [];
  });
}
