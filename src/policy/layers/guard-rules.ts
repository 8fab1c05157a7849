/** The second layer: guard rules. No evidence overrides a match. The licensee can excuse a host from a rule. */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { didYouMean } from '../../json/did-you-mean.ts';
import { type ExcuseEntry, invalidPolicy, type PolicyDocument, type RuleEntry } from '../documents.ts';
import { readRange } from '../ip-ranges.ts';
import { Subject } from '../subject.ts';
import { NO_EVIDENCE, type Verdict } from '../types.ts';
import { HOST_FORM, type HostFilter, HostMap, readAllowedHost } from '../url/host-map.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { GUARD_CHECKS, type GuardCheck, type GuardContext } from './guard-checks.ts';
import { TRAIT_SETS, traitsNeeded, traitsOf } from './guard-traits.ts';
import type { HostPolicies } from './high-value-hosts.ts';
import { type Ask, strictestFirst, verdictOf } from './layer.ts';

export interface GuardRule {
  readonly verdict: Verdict;
  readonly check: GuardCheck;
  /** Trait bits: the check can match only a request that has at least one of them. */
  readonly needs: number;
  /** The licensee's excuses from this rule; undefined if there are none. */
  readonly excuses: HostMap<readonly ExcuseEntry[]> | undefined;
}

/** Checks of a URL's destination. They also apply to URLs inside a URL. */
const PLACE_CHECKS: ReadonlySet<string> = new Set(['host_name', 'spelled_address']);

/** Compiles the guard rules, deny before flag. @throws PagegateError policy_invalid */
export function compileGuards(
  document: PolicyDocument,
  tokens: TokenIndex,
  hosts: HostMap<HostPolicies>,
  filter: HostFilter,
): readonly GuardRule[] {
  const places: { readonly check: GuardCheck; readonly checkBare: GuardCheck }[] = [];
  const isInternal = (url: CanonicalUrl, isBare: boolean): boolean => {
    const subject = new Subject({ url, method: 'GET' }, NO_EVIDENCE, tokens);
    if (hosts.all(subject.host).some(({ entries }) => entries.some(({ group }) => group === 'metadata'))) return true;
    return places.some(({ check, checkBare }) => (isBare ? checkBare : check)(subject));
  };
  const context: GuardContext = {
    tokens,
    categories: document.categories,
    lookalikes: document.lookalikes,
    hosts: document.hosts,
    filter,
    exceptions: document.address_exceptions.map(({ cidr }) => readRange(cidr)),
    isInternal,
  };
  const excuses = compileExcuses(document);
  const rules: GuardRule[] = [];
  for (const rule of document.rules) {
    if (rule.kind !== 'guard') continue;
    const { id } = rule;
    const factory = GUARD_CHECKS[rule.check ?? ''];
    if (factory === undefined) throw invalidPolicy(id, `The guard rule "${id}" names no check that exists.`);
    const verdict = verdictOf(rule.verdict, 'rules', id, rule.note);
    const check = factory(rule, context);
    rules.push({ verdict, check, needs: traitsNeeded(rule), excuses: excuses.get(id) });
    // In a value without a scheme, the last label may be a file extension: an unknown suffix means nothing.
    if (isPlaceRule(rule)) places.push({ check, checkBare: factory({ ...rule, unlisted: false }, context) });
  }
  return strictestFirst(rules);
}

/** Whether a rule checks for internal destinations. A rule that denies every address is not one of them. */
function isPlaceRule({ check = '', ranges = [] }: RuleEntry): boolean {
  return PLACE_CHECKS.has(check) || (check === 'address' && !ranges.includes('0.0.0.0/0'));
}

/** Compiles the excuses into a map by rule, then by host. @throws PagegateError policy_invalid */
function compileExcuses({ excuses, rules }: PolicyDocument): Map<string, HostMap<readonly ExcuseEntry[]>> {
  const byRule = new Map<string, HostMap<readonly ExcuseEntry[]>>();
  const guards = rules.filter(({ kind }) => kind === 'guard').map(({ id }) => id);
  for (const excuse of excuses) {
    const { rule, host } = excuse;
    const read = readAllowedHost(host);
    if (read === undefined)
      throw invalidPolicy(rule, `"excuse" names the host "${host}" for "${rule}", which is not a host: ${HOST_FORM}.`);
    if (!guards.includes(rule))
      throw invalidPolicy(
        rule,
        `"excuse" names the guard rule "${rule}", which is not in force${didYouMean(rule, guards)}.`,
      );
    const map = byRule.get(rule) ?? new HostMap<readonly ExcuseEntry[]>();
    byRule.set(rule, map);
    map.add(read.host, read.reach, [...(map.add(read.host, read.reach, []) ?? []), excuse]);
  }
  return byRule;
}

function isExcused(excuses: GuardRule['excuses'], { host, url }: Subject): boolean {
  if (excuses === undefined) return false;
  return excuses.all(host).some((entries) => entries.some(({ port }) => port === undefined || port === url.port));
}

/** Selects the guard rules for a request by its traits. */
export class GuardPlan {
  readonly #rules: readonly GuardRule[];
  readonly #hosts: HostFilter;
  readonly #rulesByTraits: (readonly GuardRule[] | undefined)[] = new Array(TRAIT_SETS).fill(undefined);

  /** @param hosts reads the host of each request */
  constructor(rules: readonly GuardRule[], hosts: HostFilter) {
    this.#rules = rules;
    this.#hosts = hosts;
  }

  /** Returns the rules that can match a request. */
  rulesFor(subject: Subject): readonly GuardRule[] {
    const traits = traitsOf(subject, this.#hosts.read(subject.host).hasDigit);
    this.#rulesByTraits[traits] ??= this.#rules.filter(({ needs }) => (needs & traits) !== 0);
    return this.#rulesByTraits[traits]!;
  }
}

export const guardVerdict: Ask<{ readonly guardPlan: GuardPlan }> = ({ guardPlan }, subject, all) => {
  const rules = guardPlan.rulesFor(subject);
  let first: Verdict | undefined;
  // A callback for each rule would take longer than most of the checks.
  for (let at = 0; at < rules.length; at++) {
    const { check, excuses, verdict } = rules[at]!;
    if (!check(subject) || isExcused(excuses, subject)) continue;
    if (all === undefined) return verdict;
    first ??= verdict;
    all.push(verdict);
  }
  return first;
};
