/** The second layer: guard rules, which no evidence may excuse. */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import type { PolicyDocument, RuleEntry } from '../documents.ts';
import { parseRange } from '../guards/addresses.ts';
import { GUARD_CHECKS, type GuardCheck, type GuardContext } from '../guards/checks.ts';
import { needsOf, traitsOf } from '../guards/traits.ts';
import { NO_EVIDENCE, type Verdict } from '../types.ts';
import type { HostMap } from '../url/host-map.ts';
import { Subject } from '../url/subject.ts';
import type { TokenIndex } from '../url/tokens.ts';
import type { HostPolicy } from './hosts.ts';
import { type Ask, firstMatch, invalid, strictestFirst, verdictOf } from './layer.ts';

export interface GuardRule {
  readonly verdict: Verdict;
  readonly check: GuardCheck;
  /** The check can hold only for a request that has one of these traits. */
  readonly needs: number;
}

/** Deny before flag. @throws PagegateError policy_invalid */
export function compileGuards(
  document: PolicyDocument,
  tokens: TokenIndex,
  hosts: HostMap<HostPolicy>,
): readonly GuardRule[] {
  const places: GuardRule[] = [];
  const isInternal = (url: CanonicalUrl): boolean => {
    const subject = new Subject({ url, method: 'GET' }, NO_EVIDENCE, tokens);
    if (hosts.find(subject.host)?.entry.group === 'metadata') return true;
    return places.some((rule) => rule.check(subject));
  };
  const exceptions = document.addressExceptions.map(({ cidr }) => parseRange(cidr));
  const context: GuardContext = { tokens, categories: document.categories, exceptions, isInternal };
  const rules: GuardRule[] = [];
  for (const rule of document.rules) {
    if (rule.kind !== 'guard') continue;
    const { id } = rule;
    const factory = GUARD_CHECKS[rule.check ?? ''];
    if (factory === undefined) throw invalid(id, `The guard rule "${id}" names no check that exists.`);
    const verdict = verdictOf(rule.verdict, 'rules', id, rule.note);
    const compiled = { verdict, check: factory(rule, context), needs: needsOf(rule) };
    rules.push(compiled);
    if (isPlaceRule(rule)) places.push(compiled);
  }
  return strictestFirst(rules);
}

/** Whether a rule is about where a URL leads: those are asked about URLs inside a URL too. Any public address is such a place no more. */
function isPlaceRule(rule: RuleEntry): boolean {
  if (rule.check === 'host_name') return true;
  return rule.check === 'address' && !(rule.ranges ?? []).includes('0.0.0.0/0');
}

export const guardVerdict: Ask = ({ guards }, subject, all) => {
  const traits = traitsOf(subject);
  return firstMatch(guards, ({ needs, check }) => (needs & traits) !== 0 && check(subject), all);
};
