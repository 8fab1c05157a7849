/** The checks that a guard rule can name, each made into one function of a request. */
import { type CanonicalUrl, decodeOnce, SPELLING } from '../../domain/canonical-url.ts';
import type { PolicyDocument, RuleEntry } from '../documents.ts';
import { SecretScanner } from '../secrets.ts';
import type { Subject } from '../url/subject.ts';
import type { TokenIndex } from '../url/tokens.ts';
import { contains, isIsatap, parseRange, type Range } from './addresses.ts';
import { bySuffix, isConfusableIdn, isInvalidIdn, isSpecialName, isTunnelName } from './names.ts';
import { hasNestedInternal } from './nested.ts';
import { LENGTH_MAX } from './traits.ts';

export type GuardCheck = (subject: Subject) => boolean;

export interface GuardContext {
  readonly tokens: TokenIndex;
  readonly categories: PolicyDocument['categories'];
  /** The networks that the licensee excuses. */
  readonly exceptions: readonly Range[];
  /** Whether a URL inside a URL leads to an internal place. */
  readonly isInternal: (url: CanonicalUrl) => boolean;
}

type Factory = (rule: RuleEntry, context: GuardContext) => GuardCheck;

/** The checks that a guard rule can name. */
export const GUARD_CHECKS: Readonly<Record<string, Factory>> = {
  scheme: (rule) => {
    const allowed = new Set(rule.allowed ?? []);
    return ({ url }) => !allowed.has(url.scheme);
  },
  userinfo: () => (request) => request.url.hasUserinfo,
  spelling: (rule) => {
    const bits = (rule.spelling ?? []).reduce((mask, name) => mask | (SPELLING[name as keyof typeof SPELLING] ?? 0), 0);
    return ({ url }) => (url.spelling & bits) !== 0;
  },
  length: (rule) => {
    const limit = rule.max_length ?? LENGTH_MAX;
    return ({ url }) => url.href.length > limit;
  },
  method: (rule) => {
    const allowed = new Set<string | number>(rule.allowed ?? []);
    return ({ method }) => !allowed.has(method);
  },
  method_is: (rule) => {
    const methods = new Set(rule.methods ?? []);
    return ({ method }) => methods.has(method);
  },
  parameter: (rule, context) => {
    const names = context.tokens.ordinal(rule.names ?? '');
    return (subject) => hasParameter(subject, names);
  },
  address: (rule, context) => {
    const ranges = (rule.ranges ?? []).map(parseRange);
    const { isatap = false, excusable = false } = rule;
    return ({ address }) => {
      if (address === undefined) return false;
      if (excusable && context.exceptions.some((range) => contains(range, address))) return false;
      return ranges.some((range) => contains(range, address)) || (isatap && isIsatap(address));
    };
  },
  host_name: (rule) => {
    const suffixes = bySuffix(rule.suffixes ?? []);
    const singleLabel = rule.single_label ?? false;
    return ({ host, url }) => url.hostKind === 'domain' && isSpecialName(host, singleLabel, suffixes);
  },
  port: (rule) => {
    const allowed = new Set<string | number>(rule.allowed ?? []);
    return ({ url }) => !allowed.has(url.port);
  },
  idn_invalid: () => (request) => isInvalidIdn(request.host),
  idn_confusable: () => (request) => isConfusableIdn(request.host),
  dns_tunnel: (rule) => {
    const limits = {
      minRun: rule.min_run ?? 32,
      minRunDigits: rule.min_run_digits ?? 5,
      maxSubdomainLength: rule.max_subdomain_length ?? 120,
    };
    return ({ host, url }) => url.hostKind === 'domain' && isTunnelName(host, limits);
  },
  secret: (rule, context) => {
    const scanner = new SecretScanner(rule.tokens ?? []);
    const names = context.tokens.ordinal(rule.names ?? '');
    return (subject) => {
      const { decodedPath, query } = subject.url;
      if (scanner.find(decodedPath) !== undefined) return true;
      return (query !== '' && scanner.find(decodeOnce(query)) !== undefined) || hasParameter(subject, names);
    };
  },
  nested_internal: (rule, context) => {
    const places = {
      isInternal: context.isInternal,
      schemes: new Set(rule.schemes ?? []),
      maxUrls: rule.max_urls ?? 16,
      names: context.tokens.ordinal(rule.names ?? ''),
      addressNames: context.tokens.ordinal(rule.address_names ?? rule.names ?? ''),
    };
    return (subject) => hasNestedInternal(subject, places);
  },
  category: (rule, { categories }) => {
    const wanted = new Set(rule.categories ?? []);
    for (const { id, name, threat } of categories) {
      if (wanted.has(id) || (threat && rule.threats === true)) wanted.add(name);
    }
    if (wanted.size === 0) return () => false;
    return ({ evidence }) => evidence.filteringCategories().some((category) => wanted.has(category));
  },
};

/** Whether a parameter of a list has a value. */
function hasParameter({ parameters }: Subject, list: number): boolean {
  return parameters.some(({ value, lists }) => value !== '' && lists.includes(list));
}
