/** The second layer: guard rules, which no evidence may excuse; the licensee can excuse one host from one of them. */
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
import { type Ask, firstMatch, strictestFirst, verdictOf } from './layer.ts';

export interface GuardRule {
  readonly verdict: Verdict;
  readonly check: GuardCheck;
  /** The check can hold only for a request that has one of these traits. */
  readonly needs: number;
  /** The licensee's excuses from this rule, where there are any. */
  readonly excuses: HostMap<readonly ExcuseEntry[]> | undefined;
}

/** Checks about where a URL leads: those are asked about URLs inside a URL too. */
const PLACE_CHECKS: ReadonlySet<string> = new Set(['host_name', 'spelled_address']);

/** Deny before flag. @throws PagegateError policy_invalid */
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
    // The last label of a value without a scheme may be the extension of a file.
    if (isPlaceRule(rule)) places.push({ check, checkBare: factory({ ...rule, unlisted: false }, context) });
  }
  return strictestFirst(rules);
}

/** Whether a rule is about where a URL leads. Any public address is such a place no more. */
function isPlaceRule({ check = '', ranges = [] }: RuleEntry): boolean {
  return PLACE_CHECKS.has(check) || (check === 'address' && !ranges.includes('0.0.0.0/0'));
}

/** The excuses of each rule by host. @throws PagegateError policy_invalid */
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

/** The guard rules by the traits that a request has. */
export class GuardPlan {
  readonly #rules: readonly GuardRule[];
  readonly #asked: (readonly GuardRule[] | undefined)[] = new Array(TRAIT_SETS).fill(undefined);

  constructor(rules: readonly GuardRule[]) {
    this.#rules = rules;
  }

  /** Those that can match a request with these traits. */
  asked(traits: number): readonly GuardRule[] {
    this.#asked[traits] ??= this.#rules.filter(({ needs }) => (needs & traits) !== 0);
    return this.#asked[traits]!;
  }
}

export const guardVerdict: Ask<{ readonly guardPlan: GuardPlan }> = ({ guardPlan }, subject, all) => {
  const matches = ({ check, excuses }: GuardRule): boolean => check(subject) && !isExcused(excuses, subject);
  return firstMatch(guardPlan.asked(traitsOf(subject)), matches, all);
};
