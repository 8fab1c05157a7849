/** Test cases of a policy: URLs with what is known about them, and the verdict that they must get. */
import { parseUrl } from '../domain/canonical-url.ts';
import { parseTarget } from '../domain/target.ts';
import { evaluate } from './evaluate.ts';
import type { Policy } from './policy.ts';
import type { Evidence, Layer, Verdict, VerdictName } from './types.ts';

export interface PolicyCase {
  readonly name?: string;
  /** A bare domain or a URL, as a caller sends it. */
  readonly url: string;
  readonly method?: string;
  readonly found?: boolean;
  readonly parent_found?: boolean;
  readonly page_types?: Readonly<Record<string, string>>;
  readonly filtering_categories?: readonly string[];
  readonly expect: {
    readonly verdict: VerdictName | 'refused';
    readonly layer?: Layer;
    readonly id?: string;
  };
}

export interface CaseResult {
  readonly case: PolicyCase;
  /** undefined where the value is refused: answered with 400. */
  readonly verdict: Verdict | undefined;
  readonly passed: boolean;
}

/** The evidence that a case describes; its pages are spelled as a build would have stored them. */
function caseEvidence(item: PolicyCase): Evidence {
  const pages = Object.entries(item.page_types ?? {}).map(([type, url]) => ({ type, url: parseUrl(url)?.href ?? url }));
  return {
    found: item.found ?? false,
    parentFound: item.parent_found ?? false,
    pages: () => pages,
    filteringCategories: () => item.filtering_categories ?? [],
  };
}

/** The verdict of a case under a policy; undefined where its value is refused. */
export function judgeCase(policy: Policy, item: PolicyCase): Verdict | undefined {
  const target = parseTarget(item.url);
  if ('problem' in target) return undefined;
  return evaluate(policy, { url: target.url, method: (item.method ?? 'GET').toUpperCase() }, caseEvidence(item));
}

export function runCases(policy: Policy, cases: readonly PolicyCase[]): CaseResult[] {
  return cases.map((item) => {
    const verdict = judgeCase(policy, item);
    const { expect } = item;
    const passed =
      (verdict?.verdict ?? 'refused') === expect.verdict &&
      (expect.layer === undefined || verdict?.layer === expect.layer) &&
      (expect.id === undefined || verdict?.id === expect.id);
    return { case: item, verdict, passed };
  });
}
