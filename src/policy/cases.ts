/** Test cases of a policy: URLs with stated evidence, and the verdicts that they must get. */
import { parseUrl } from '../domain/canonical-url.ts';
import { parseTarget } from '../domain/target.ts';
import type { PagegateError } from '../errors.ts';
import { didYouMean } from '../json/did-you-mean.ts';
import { HTTP_TOKEN } from '../network/http-syntax.ts';
import type { VerdictName } from '../record/vocabulary.ts';
import { invalidPolicy } from './documents.ts';
import { evaluate } from './evaluate.ts';
import type { Policy } from './policy.ts';
import type { Evidence, Layer, PageEvidence, Verdict } from './types.ts';

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
  /** undefined if the value or the method is refused: the endpoint answers with 400. */
  readonly verdict: Verdict | undefined;
  readonly passed: boolean;
}

/** Evidence about a domain that the caller states instead of an index. */
export interface Stated {
  readonly found?: boolean | undefined;
  readonly parentFound?: boolean | undefined;
  readonly pages?: readonly PageEvidence[] | undefined;
  readonly filteringCategories?: readonly string[] | undefined;
}

/** Returns the stated evidence, with the URLs of pages in the spelling that a build would store. */
export function statedEvidence({ found, parentFound, pages = [], filteringCategories = [] }: Stated): Evidence {
  const stored = pages.map(({ type, url }) => ({ type, url: parseUrl(url)?.href ?? url }));
  return {
    found: found ?? false,
    parentFound: parentFound ?? false,
    pages: () => stored,
    filteringCategories: () => filteringCategories,
  };
}

function caseEvidence({ found, parent_found, page_types = {}, filtering_categories }: PolicyCase): Evidence {
  const pages = Object.entries(page_types).map(([type, url]) => ({ type, url }));
  return statedEvidence({ found, parentFound: parent_found, pages, filteringCategories: filtering_categories });
}

/** Returns the verdict of a case under a policy; undefined if its value or its method is refused. */
export function judgeCase(policy: Policy, item: PolicyCase): Verdict | undefined {
  const { url, method = 'GET' } = item;
  const target = parseTarget(url);
  if ('problem' in target || !HTTP_TOKEN.test(method)) return undefined;
  return evaluate(policy, { url: target.url, method: method.toUpperCase() }, caseEvidence(item));
}

/**
 * Rejects cases with evidence that no index can give: their result would mean nothing.
 *
 * @throws PagegateError policy_invalid, with the invalid case
 */
export function assertCases({ document }: Policy, cases: readonly PolicyCase[]): void {
  const types = document.page_types.map(({ type }) => type);
  const categories = document.categories.map(({ name }) => name);
  for (const [at, { url, page_types = {}, filtering_categories: named = [] }] of cases.entries()) {
    const wrong = (what: string): PagegateError => invalidPolicy(url, `The case [${at}] (${url}) ${what}.`);
    for (const [type, page] of Object.entries(page_types)) {
      if (!types.includes(type))
        throw wrong(`names the page type "${type}", which does not exist${didYouMean(type, types)}`);
      if (parseUrl(page) === undefined) throw wrong(`has the page "${page}", which is not a URL with its scheme`);
    }
    const unknown = named.find((name) => !categories.includes(name));
    if (unknown !== undefined)
      throw wrong(
        `names the category "${unknown}", which the taxonomy does not have${didYouMean(unknown, categories)}`,
      );
  }
}

/** Judges every case and compares the result with the expected one. @throws PagegateError policy_invalid, for evidence that no index can give */
export function runCases(policy: Policy, cases: readonly PolicyCase[]): CaseResult[] {
  assertCases(policy, cases);
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
