/** What every layer said about a URL, in order, and which of them decided. */
import { allowVerdict, defaultVerdict, evaluate, hostVerdict, matchingGuards, matchingPatterns } from './evaluate.ts';
import { matchPages } from './pages.ts';
import type { Policy } from './policy.ts';
import { comparableHost, type Evidence, type Layer, type Request, type Verdict } from './types.ts';

export interface ExplainStep {
  readonly step: 'high_value_hosts' | 'guard_rules' | 'allow_entries' | 'page_type_db' | 'pattern_rules' | 'default';
  readonly layer: Layer;
  /** Everything in this layer that matches, in its order; empty where nothing does. */
  readonly matches: readonly Verdict[];
  /** What the layer looked at or found, in words. */
  readonly says: string;
  /** Whether this layer's answer is the final one. */
  readonly decides: boolean;
  /** Whether an earlier layer had ended the evaluation, so that this one was not asked. */
  readonly reached: boolean;
}

export interface Explanation {
  readonly verdict: Verdict;
  readonly steps: readonly ExplainStep[];
}

interface Said {
  readonly step: ExplainStep['step'];
  readonly layer: Layer;
  readonly matches: readonly Verdict[];
  readonly says: string;
  /** Whether the evaluation ends here. */
  readonly ends: boolean;
}

/** Asks every layer, also those that the evaluation does not reach. */
export function explain(policy: Policy, request: Request, evidence: Evidence): Explanation {
  const host = comparableHost(request.url.host);
  const verdict = evaluate(policy, request, evidence);
  const hosts = hostVerdict(policy, request, host);
  const guards = matchingGuards(policy, request, host, evidence);
  const allow = allowVerdict(policy, request, host);
  const page = matchPages(policy.pages, request, host, evidence);
  const patterns = matchingPatterns(policy, request, host, page?.verdict.verdict === 'allow');
  const fallback = defaultVerdict(policy, request, evidence);
  const pages = [...evidence.pages()].length;
  const said: Said[] = [
    {
      step: 'high_value_hosts',
      layer: 'high_value_hosts',
      matches: listed(hosts),
      says: hosts === undefined ? `${host} is not on the list` : `${host} is on the list as ${hosts.id}`,
      ends: hosts?.verdict === 'deny',
    },
    { step: 'guard_rules', layer: 'rules', matches: guards, says: count(guards, 'guard rule'), ends: hasDeny(guards) },
    {
      step: 'allow_entries',
      layer: 'rules',
      matches: listed(allow?.verdict),
      says:
        allow === undefined
          ? 'no allow entry for this place and method'
          : `allowed by name: ${allow.entry.host}${allow.entry.path}`,
      ends: allow !== undefined,
    },
    {
      step: 'page_type_db',
      layer: 'page_type_db',
      matches: listed(page?.verdict),
      says: page === undefined ? `${pages} verified pages, none of them here` : `on the verified page ${page.url}`,
      ends: page?.verdict.verdict === 'deny',
    },
    {
      step: 'pattern_rules',
      layer: 'rules',
      matches: patterns,
      says: count(patterns, 'pattern rule'),
      ends: hasDeny(patterns),
    },
    { step: 'default', layer: 'default', matches: [fallback], says: classified(evidence), ends: true },
  ];
  return { verdict, steps: steps(said, verdict) };
}

function steps(said: readonly Said[], verdict: Verdict): ExplainStep[] {
  let reached = true;
  let isDecided = false;
  return said.map(({ ends, ...step }) => {
    const decides = reached && !isDecided && step.matches.includes(verdict);
    const result = { ...step, decides, reached };
    isDecided ||= decides;
    if (ends) reached = false;
    return result;
  });
}

function listed(verdict: Verdict | undefined): readonly Verdict[] {
  return verdict === undefined ? [] : [verdict];
}

function hasDeny(verdicts: readonly Verdict[]): boolean {
  return verdicts.some((verdict) => verdict.verdict === 'deny');
}

function count(verdicts: readonly Verdict[], what: string): string {
  if (verdicts.length === 0) return `no ${what} matches`;
  return `${verdicts.length} ${what}${verdicts.length === 1 ? ' matches' : 's match'}`;
}

function classified(evidence: Evidence): string {
  if (evidence.found) return 'the host is classified';
  return evidence.parentFound
    ? 'a domain above the host is classified, the host is not'
    : 'nothing is known about the host';
}
