/** Guard rules: what no evidence may excuse. Each check of the policy file is made into one function of a request. */
import { type CanonicalUrl, decodeOnce, SPELLING } from '../domain/canonical-url.ts';
import { filteringTaxonomy } from '../record/taxonomy.ts';
import { type Address, contains, isIsatap, parseAddress, parseRange, type Range } from './addresses.ts';
import type { RuleEntry } from './documents.ts';
import { bySuffix, isConfusableIdn, isInvalidIdn, isSpecialName, isTunnelName } from './names.ts';
import { hasNestedInternal, hasOpenRedirect } from './nested.ts';
import { eachParameter, wholeQuery } from './parameters.ts';
import { SecretScanner } from './secrets.ts';
import type { TokenIndex } from './tokens.ts';
import type { Evidence, Request, Verdict } from './types.ts';

/** A request, and what several guards ask about it. */
export interface GuardRequest extends Request {
  /** The host, without `www.` labels. */
  readonly host: string;
  readonly evidence: Evidence;
  readonly address: Address | undefined;
}

export type GuardCheck = (request: GuardRequest) => boolean;

export interface GuardRule {
  readonly verdict: Verdict;
  readonly check: GuardCheck;
  /** Bits of {@link TRAIT}: the check can hold only for a request that has one of them. */
  readonly needs: number;
}

/** What a request must have for a guard to be worth asking; most requests have few of these. */
const TRAIT = {
  always: 1,
  spelling: 2,
  address: 4,
  international: 8,
  query: 16,
  /** Another scheme than http and https, or another port than theirs. */
  place: 32,
  /** Longer than {@link USUAL_LENGTH}. */
  length: 64,
  /** Another method than GET. */
  method: 128,
} as const;

const USUAL_LENGTH = 512;
const LENGTH_MAX = 4096;

/** Which traits a check needs; a check that is not listed is always asked. */
const NEEDS: Readonly<Record<string, number>> = {
  userinfo: TRAIT.spelling,
  spelling: TRAIT.spelling,
  address: TRAIT.address,
  idn_invalid: TRAIT.international,
  idn_confusable: TRAIT.international,
  parameter: TRAIT.query,
  nested_internal: TRAIT.query,
};

export function needsOf(rule: RuleEntry): number {
  const { check = '' } = rule;
  const allowed = new Set<string | number>(rule.allowed ?? []);
  if (check === 'scheme' && allowed.has('http') && allowed.has('https')) return TRAIT.place;
  if (check === 'port' && allowed.has(80) && allowed.has(443)) return TRAIT.place;
  if (check === 'length' && (rule.max_length ?? LENGTH_MAX) >= USUAL_LENGTH) return TRAIT.length;
  if (check === 'method' && allowed.has('GET')) return TRAIT.method;
  if (check === 'method_is' && !(rule.methods ?? []).includes('GET')) return TRAIT.method;
  return NEEDS[check] ?? TRAIT.always;
}

/** The traits of a request. A plain URL has none of those that come from an unusual spelling. */
export function traitsOf({ url, method }: Request): number {
  let traits: number = TRAIT.always;
  if (url.query !== '' || url.queryMark >= 0 || url.path.includes(':')) traits |= TRAIT.query;
  if (url.href.length > USUAL_LENGTH) traits |= TRAIT.length;
  if (method !== 'GET') traits |= TRAIT.method;
  if (url.isPlain) return traits;
  if ((url.scheme !== 'http' && url.scheme !== 'https') || (url.port !== 80 && url.port !== 443)) traits |= TRAIT.place;
  if (url.decodedPath.includes(':')) traits |= TRAIT.query;
  if (url.hostKind !== 'domain') traits |= TRAIT.address;
  if (url.host.includes('xn--')) traits |= TRAIT.international;
  return url.spelling !== 0 || url.hasUserinfo ? traits | TRAIT.spelling : traits;
}

export interface GuardContext {
  readonly tokens: TokenIndex;
  readonly list: (name: string) => number;
  readonly exceptions: readonly Range[];
  /** The address and name rules, for URLs inside a URL. */
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
    const names = context.list(rule.names ?? '');
    return ({ url }) => hasParameter(wholeQuery(url), context.tokens, names);
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
    const names = context.list(rule.names ?? '');
    return ({ url }) => {
      if (scanner.find(url.decodedPath) !== undefined) return true;
      if (url.query !== '' && scanner.find(decodeOnce(url.query)) !== undefined) return true;
      return hasParameter(wholeQuery(url), context.tokens, names);
    };
  },
  nested_internal: (rule, context) => {
    const places = {
      isInternal: context.isInternal,
      schemes: new Set(rule.schemes ?? []),
      maxUrls: rule.max_urls ?? 16,
      tokens: context.tokens,
      names: context.list(rule.names ?? ''),
      addressNames: context.list(rule.address_names ?? rule.names ?? ''),
    };
    return ({ url }) => hasNestedInternal(url, places);
  },
  category: (rule) => {
    const names = new Set(rule.categories ?? []);
    if (rule.threats === true) {
      for (const category of filteringTaxonomy) if (category.threat) names.add(category.name);
    }
    for (const category of filteringTaxonomy) if (names.has(category.id)) names.add(category.name);
    if (names.size === 0) return () => false;
    return ({ evidence }) => {
      for (const category of evidence.filteringCategories()) if (names.has(category)) return true;
      return false;
    };
  },
};

/** The structural checks that a pattern rule can name. */
export const PATTERN_CHECKS: Readonly<Record<string, (rule: RuleEntry) => (url: CanonicalUrl) => boolean>> = {
  open_redirect: () => hasOpenRedirect,
  bulk_query: (rule) => {
    const maxLength = rule.max_query_length ?? 1024;
    const maxRun = rule.max_run ?? 160;
    return (url) =>
      url.query.length > maxLength ||
      hasRun(url.query, maxRun) ||
      (url.path.length > maxRun && hasRun(url.path, maxRun));
  },
};

function hasParameter(query: string, tokens: TokenIndex, list: number): boolean {
  if (query === '') return false;
  let found = false;
  eachParameter(query, (name, value) => {
    if (!found && value !== '') found = tokens.find(name, 0, name.length).includes(list);
  });
  return found;
}

/** A run of letters, digits and signs is encoded data rather than words when this many are digits or capitals. */
const ENCODED_MIN_CHARACTERS = 16;

/** The escapes of one letter beyond ASCII, in UTF-8. */
const ESCAPED_LETTER =
  /%(?:c[2-9a-f]|d[0-9a-f]|e[0-9a-f]%[89ab][0-9a-f]|f[0-4](?:%[89ab][0-9a-f]){2})%[89ab][0-9a-f]/gi;

/**
 * Whether a text holds more than `limit` characters in a row as an encoder writes them. Slashes, dots and blanks end a run; a letter of any
 * script is one character of it, however many bytes its escapes take.
 */
function hasRun(escaped: string, limit: number): boolean {
  if (escaped.length <= limit) return false;
  const text = escaped.includes('%') ? escaped.replace(ESCAPED_LETTER, 'a').replaceAll('%20', ' ') : escaped;
  let run = 0;
  let encoded = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isLower = code >= 0x61 && code <= 0x7a;
    const isEncoded = (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x25;
    // A plus stands in base64, and between words: it neither ends a run nor makes it one of data.
    const isRun = isLower || isEncoded || code === 0x2b || code === 0x2d || code === 0x5f;
    run = isRun ? run + 1 : 0;
    encoded = isRun ? encoded + (isEncoded ? 1 : 0) : 0;
    if (run > limit && encoded >= ENCODED_MIN_CHARACTERS) return true;
  }
  return false;
}

/** The address of a URL's host; undefined for a domain. */
export function addressOf(url: CanonicalUrl): Address | undefined {
  return url.hostKind === 'domain' ? undefined : parseAddress(url.host);
}
