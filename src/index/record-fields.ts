/** What goes into one record, as ranges of bytes: filled again for each line of a drop, so that nothing is allocated for it. */
import type { Entry } from '../record/entry.ts';
import { MAX_PAGE_TYPES } from './layout.ts';

/** The fields of one record. Byte ranges refer to `source`; the domain is a key, the URLs are ASCII. */
export class RecordFields {
  source: Uint8Array = new Uint8Array(0);
  domainStart = 0;
  domainEnd = 0;
  /** Two ASCII letters, the first one in the high byte; 0 when absent. */
  language = 0;
  /** Ordinal in the taxonomy; -1 when absent. */
  iabCategory = -1;
  /** Ordinals, ascending, each once; the first `filteringCount` count. */
  readonly filtering: Uint8Array = new Uint8Array(256);
  filteringCount = 0;
  /** 0 to 1000; -1 when absent. */
  openPageRankHundredths = -1;
  /** From 1; 0 when absent. */
  globalRank = 0;
  /** Ordinals of the page types, ascending, each once, and where their URLs lie. */
  readonly pageTypes: Uint8Array = new Uint8Array(MAX_PAGE_TYPES);
  readonly pageStarts: Int32Array = new Int32Array(MAX_PAGE_TYPES);
  readonly pageEnds: Int32Array = new Int32Array(MAX_PAGE_TYPES);
  pageCount = 0;

  /** Forgets the record; `source` stays. */
  clear(): void {
    this.language = 0;
    this.iabCategory = -1;
    this.filteringCount = 0;
    this.openPageRankHundredths = -1;
    this.globalRank = 0;
    this.pageCount = 0;
  }

  addPage(pageType: number, start: number, end: number): void {
    this.pageTypes[this.pageCount] = pageType;
    this.pageStarts[this.pageCount] = start;
    this.pageEnds[this.pageCount] = end;
    this.pageCount += 1;
  }
}

const scratch = Buffer.alloc(256 * 1024);

/** Fills the fields from an entry; they are valid until the next call. */
export function fieldsFromEntry(entry: Entry, fields: RecordFields): void {
  fields.clear();
  fields.source = scratch;
  fields.domainStart = 0;
  let at = scratch.write(entry.domain, 0, 'latin1');
  fields.domainEnd = at;
  if (entry.language !== undefined)
    fields.language = (entry.language.charCodeAt(0) << 8) | entry.language.charCodeAt(1);
  if (entry.iabCategory !== undefined) fields.iabCategory = entry.iabCategory;
  for (const ordinal of entry.filteringCategories) fields.filtering[fields.filteringCount++] = ordinal;
  if (entry.openPageRankHundredths !== undefined) fields.openPageRankHundredths = entry.openPageRankHundredths;
  if (entry.globalRank !== undefined) fields.globalRank = entry.globalRank;
  for (const { ordinal, url } of entry.pageTypes) {
    const start = at;
    at += scratch.write(url, at, 'latin1');
    fields.addPage(ordinal, start, at);
  }
}
