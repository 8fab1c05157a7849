/** The fuzzer of the verdict: nothing may throw, and two spellings of one URL must get the same verdict. */
import { parseTarget } from '../../src/domain/target.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Evidence, Verdict } from '../../src/policy/types.ts';
import { Random } from '../random.ts';
import { mutate, randomUrl, respell } from './urls.ts';

/** Rules about the spelling itself. Only these may judge a spelling more strictly than the URL it represents. */
const SPELLING_RULES: ReadonlySet<string> = new Set([
  'control_characters',
  'backslash',
  'host_escape',
  'obfuscated_address',
  'userinfo',
]);

export const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'TRACE', 'X'];

const EVIDENCE: Evidence = {
  found: true,
  parentFound: true,
  pages: () => [
    { type: 'login', url: 'https://example.org/a' },
    { type: 'account', url: 'https://example.org/index.php?page=account' },
    { type: 'docs', url: 'https://docs.example.com/' },
    { type: 'help', url: 'https://www.example.co.uk/help' },
    { type: 'download', url: 'https://example.org/blog/' },
    { type: 'upload', url: 'https://example.org/help/index.php' },
  ],
  filteringCategories: () => [],
};

/** Returns the verdict for a value; undefined if it is refused. `page` is a verified login page that replaces the default verified pages. */
export function judgeValue(policy: Policy, value: string, method: string, page?: string): Verdict | undefined {
  const target = parseTarget(value);
  if ('problem' in target) return undefined;
  const evidence = page === undefined ? EVIDENCE : { ...EVIDENCE, pages: () => [{ type: 'login', url: page }] };
  return evaluate(policy, { url: target.url, method }, evidence);
}

export interface FuzzReport {
  readonly values: number;
  readonly judged: number;
  /** Number of compared pairs of different spellings of one URL. */
  readonly pairs: number;
  /** Number of pairs of which one was judged more strictly by a rule about its spelling. */
  readonly harder: number;
  readonly failures: readonly string[];
}

/** Runs the fuzzer. Stops after ten failures. */
export function fuzzVerdicts(policy: Policy, seed: number, count: number): FuzzReport {
  const random = new Random(seed);
  const failures: string[] = [];
  let judged = 0;
  let pairs = 0;
  let harder = 0;
  for (let at = 0; at < count && failures.length < 10; at++) {
    const base = random.chance(50) ? randomUrl(random) : mutate(random, randomUrl(random));
    const method = random.pick(METHODS);
    try {
      const verdict = judgeValue(policy, base, method);
      if (verdict !== undefined) judged++;
      const other = respell(random, base);
      if (other === base || !isSameUrl(base, other)) continue;
      pairs++;
      const again = judgeValue(policy, other, method);
      if (again === verdict) continue;
      if (isHarder(verdict, again)) harder++;
      else
        failures.push(
          `${JSON.stringify(base)} gets ${verdictText(verdict)}, ${JSON.stringify(other)} gets ${verdictText(again)}`,
        );
    } catch (error) {
      failures.push(`${JSON.stringify(base)} with ${method}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  return { values: count, judged, pairs, harder, failures };
}

export function verdictText(verdict: Verdict | undefined): string {
  return verdict === undefined ? 'refused' : `${verdict.verdict} ${verdict.layer}/${verdict.id}`;
}

/** Whether a browser treats two values as the same URL: both are absolute and have the same canonical form. */
function isSameUrl(one: string, other: string): boolean {
  if (!/^\s*[a-z]+:\/\//i.test(one) || !/^\s*[a-z]+:\/\//i.test(other)) return false;
  const left = URL.parse(one)?.href;
  return left !== undefined && left === URL.parse(other)?.href;
}

/** Whether two verdicts differ only because a rule about the spelling denied one of the two. */
function isHarder(one: Verdict | undefined, other: Verdict | undefined): boolean {
  return [one, other].some((verdict) => verdict?.verdict === 'deny' && SPELLING_RULES.has(verdict.id));
}
