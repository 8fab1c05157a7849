/** What goes into a verdict and what comes out. */
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import type { PageFilter } from '../record/types.ts';
import type { VerdictName } from '../record/vocabulary.ts';

export type Layer = 'high_value_hosts' | 'page_type_db' | 'rules' | 'default';

/** The answer for one URL and method, and the entry that gave it. */
export interface Verdict {
  readonly verdict: VerdictName;
  readonly layer: Layer;
  readonly id: string;
  /** What a person should know; notes of denials say that this is policy and that a retry will not help. */
  readonly note: string;
}

/** What is judged: the canonical URL and the method, in upper case. */
export interface Request {
  readonly url: CanonicalUrl;
  readonly method: string;
}

export interface PageEvidence {
  readonly type: string;
  readonly url: string;
}

/** What the index knows about the request's host. Each part is asked for only when a layer needs it. */
export interface Evidence {
  /** Whether the host itself is classified. */
  readonly found: boolean;
  /** Whether a domain above it, up to the registrable domain, is classified. */
  readonly parentFound: boolean;
  /**
   * Verified pages of the host's record and of its parents' records; those that `mayMatter` says no to may be missing. An array is
   * read without an iterator.
   */
  pages(mayMatter?: PageFilter): Iterable<PageEvidence>;
  /** Web-filtering categories (names) of the host's record and of its parents' records. */
  filteringCategories(): readonly string[];
}

/** Evidence about a host that nobody has classified. */
export const NO_EVIDENCE: Evidence = {
  found: false,
  parentFound: false,
  pages: () => [],
  filteringCategories: () => [],
};
