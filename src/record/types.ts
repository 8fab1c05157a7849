/** The domain record as the index gives it back: what is known about one domain. */

/** One verified page of a domain. */
export interface PageUrl {
  /** A page type of the vocabulary. */
  readonly type: string;
  readonly url: string;
}

/**
 * Whether the URL that stands in `bytes` from `start` up to `end`, as in a JSON string, can be a page that matters; true where that takes a
 * closer look. `isHostOfBefore`: its scheme and host are those of the page that was asked about before.
 */
export type PageFilter = (bytes: Uint8Array, start: number, end: number, isHostOfBefore: boolean) => boolean;

/** A fact that is not known is absent. */
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
