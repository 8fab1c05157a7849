/** The inputs of a verdict, and the verdict itself. */
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import type { PageFilter } from '../record/types.ts';
import type { VerdictName } from '../record/vocabulary.ts';

export type Layer = 'high_value_hosts' | 'page_type_db' | 'rules' | 'default';

/** The answer for one URL and method, with the policy entry that produced it. */
export interface Verdict {
  readonly verdict: VerdictName;
  readonly layer: Layer;
  readonly id: string;
  /** An explanation for people. Notes of denials say that this is policy and that a retry will not help. */
  readonly note: string;
}

/** The request to judge: a canonical URL and a method in upper case. */
export interface Request {
  readonly url: CanonicalUrl;
  readonly method: string;
}

export interface PageEvidence {
  readonly type: string;
  readonly url: string;
}

/** What the index knows about the request's host. A layer reads each part only when it needs it. */
export interface Evidence {
  /** Whether the host itself is classified. */
  readonly found: boolean;
  /** Whether a parent domain, up to the registrable domain, is classified. */
  readonly parentFound: boolean;
  /**
   * Returns the verified pages in the records of the host and its parents. May leave out pages that `mayMatter` rejects. An array
   * is read without an iterator, which is faster.
   */
  pages(mayMatter?: PageFilter): Iterable<PageEvidence>;
  /** Returns the names of the web-filtering categories in the records of the host and its parents. */
  filteringCategories(): readonly string[];
}

/** Evidence about a host that is not classified and has no classified parent. */
export const NO_EVIDENCE: Evidence = {
  found: false,
  parentFound: false,
  pages: () => [],
  filteringCategories: () => [],
};
