/** One verdict: high-value hosts, guard rules, the licensee's own allow entries, verified pages, pattern rules, default. */
import { decodeOnce } from '../domain/canonical-url.ts';
import { addressOf, type GuardRequest, traitsOf } from './guards.ts';
import { isBelow, matchPages } from './pages.ts';
import type { PatternRule } from './patterns.ts';
import type { AllowPolicy, Policy } from './policy.ts';
import { comparableHost, type Evidence, isRead, type Request, type Verdict } from './types.ts';

/**
 * The verdict for a URL and a method. A deny ends the evaluation. A flag is a floor: a later layer may raise it to deny, never
 * lower it. An allow entry of the licensee ends it too, at the floor.
 */
export function evaluate(policy: Policy, request: Request, evidence: Evidence): Verdict {
  const host = comparableHost(request.url.host);
  let floor = hostVerdict(policy, request, host);
  if (floor?.verdict === 'deny') return floor;
  const guard = guardVerdict(policy, request, host, evidence);
  if (guard?.verdict === 'deny') return guard;
  floor ??= guard;
  const allowed = allowVerdict(policy, request, host);
  if (allowed !== undefined) return floor ?? allowed.verdict;
  const page = matchPages(policy.pages, request, host, evidence)?.verdict;
  if (page?.verdict === 'deny') return page;
  if (page?.verdict === 'flag') floor ??= page;
  const pattern = patternVerdict(policy, request, host, page?.verdict === 'allow');
  if (pattern?.verdict === 'deny') return pattern;
  return floor ?? pattern ?? page ?? defaultVerdict(policy, request, evidence);
}

/** Layer 1. */
export function hostVerdict(policy: Policy, request: Request, host: string): Verdict | undefined {
  const entry = policy.hosts.find(host);
  if (entry === undefined) return undefined;
  return isRead(request.method) ? entry.reads : entry.writes;
}

/** Layer 2: the first guard rule that denies, otherwise the first that flags. */
function guardVerdict(policy: Policy, request: Request, host: string, evidence: Evidence): Verdict | undefined {
  let flag: Verdict | undefined;
  const { url, method } = request;
  const full: GuardRequest = { url, method, host, evidence, address: addressOf(url) };
  const traits = traitsOf(request);
  for (let at = 0; at < policy.guards.length; at++) {
    const rule = policy.guards[at]!;
    if ((rule.needs & traits) === 0 || !rule.check(full)) continue;
    if (rule.verdict.verdict === 'deny') return rule.verdict;
    flag ??= rule.verdict;
  }
  return flag;
}

/** Every guard rule that matches, in order. */
export function matchingGuards(policy: Policy, request: Request, host: string, evidence: Evidence): Verdict[] {
  const full: GuardRequest = {
    url: request.url,
    method: request.method,
    host,
    evidence,
    address: addressOf(request.url),
  };
  return policy.guards.filter((rule) => rule.check(full)).map((rule) => rule.verdict);
}

/** Layer 3: the licensee's own allow entry for the place and the method; the longest path first. */
export function allowVerdict(policy: Policy, request: Request, host: string): AllowPolicy | undefined {
  if (policy.allow.isEmpty) return undefined;
  let best: AllowPolicy | undefined;
  const path = request.url.decodedPath;
  for (const entries of policy.allow.all(host)) {
    for (const entry of entries) {
      if (!entry.methods.has(request.method) || !isBelow(path, entry.path)) continue;
      if (path !== request.url.path && !hasOwnSlashes(request.url.path, entry.path)) continue;
      if (best === undefined || entry.path.length > best.path.length) best = entry;
    }
  }
  return best;
}

/**
 * Whether an encoded path has the slashes of a prefix as slashes: a server that does not take `%2f` for one finds `/v1%2fx` elsewhere
 * than below `/v1`.
 */
function hasOwnSlashes(path: string, prefix: string): boolean {
  let end = path.indexOf('/');
  for (let at = prefix.indexOf('/'); at >= 0; at = prefix.indexOf('/', at + 1)) {
    if (end < 0) return false;
    end = path.indexOf('/', end + 1);
  }
  return decodeOnce(end < 0 ? path : path.slice(0, end)) === prefix;
}

/** Layer 5: the first pattern rule that denies, otherwise the first that flags. On a page verified as good, what stands behind the path. */
function patternVerdict(policy: Policy, request: Request, host: string, isVerified: boolean): Verdict | undefined {
  let first: PatternRule | undefined;
  const visit = (rule: PatternRule): boolean => {
    first = rule;
    return true;
  };
  if (isVerified) policy.patterns.matchBeyondPath(request.url, host, visit);
  else policy.patterns.match(request.url, host, visit);
  return first?.verdict;
}

/** Every pattern rule that matches, deny before flag. */
export function matchingPatterns(policy: Policy, request: Request, host: string, isVerified: boolean): Verdict[] {
  const found: Verdict[] = [];
  const visit = (rule: PatternRule): boolean => {
    found.push(rule.verdict);
    return false;
  };
  if (isVerified) policy.patterns.matchBeyondPath(request.url, host, visit);
  else policy.patterns.match(request.url, host, visit);
  return found;
}

/** Layer 6. */
export function defaultVerdict(policy: Policy, request: Request, evidence: Evidence): Verdict {
  if (!isRead(request.method)) return policy.defaults.unclassified_write;
  if (evidence.found) return policy.defaults.classified_read;
  return evidence.parentFound ? policy.defaults.unclassified_subdomain : policy.defaults.unclassified_read;
}
