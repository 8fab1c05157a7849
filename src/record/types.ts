/** The record of a domain, as the index returns it. */

/** One verified page of a domain. */
export interface PageUrl {
  /** A page type of the vocabulary. */
  readonly type: string;
  readonly url: string;
}

/**
 * Returns false if the URL `bytes[start, end)`, in the form of a JSON string's contents, cannot be a page that matters to the caller. Returns
 * true if that needs a closer look. `isHostOfBefore`: scheme and host are those of the page in the previous call.
 */
export type PageFilter = (bytes: Uint8Array, start: number, end: number, isHostOfBefore: boolean) => boolean;

/** What is known about one domain. Unknown facts are absent. */
export interface DomainRecord {
  /** The key: the canonical domain. */
  readonly domain: string;
  /** ISO 639-1. */
  readonly language?: string;
  /** In vocabulary order, at most one of each type. */
  readonly pageTypes: readonly PageUrl[];
  /** The full path in the taxonomy, joined by ` > `. */
  readonly iabCategory?: string;
  readonly filteringCategories?: readonly string[];
  /** From 0 to 10, in hundredths. */
  readonly openPageRank?: number;
  /** From 1. */
  readonly globalRank?: number;
}
