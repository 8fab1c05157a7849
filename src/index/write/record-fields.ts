/** The contents of a record, as ranges of bytes. One object is reused for all lines of a drop, to avoid allocation. */
import type { Entry } from '../../record/entry.ts';
import { PAGE_TYPES_MAX } from '../format/layout.ts';
import { findDomainInUrl } from './domain-in-url.ts';

/** Origin of a page whose URL is not on the record's domain. */
export const OFF_DOMAIN = -1;
/** Template of a page whose path is not a template. */
export const NO_TEMPLATE = -1;
/** Template of a page whose path has not been looked up. */
export const TEMPLATE_UNKNOWN = -2;

/** The fields of one record. Byte ranges refer to `source`; the domain is a key, the URLs are ASCII. */
export class RecordFields {
  source: Uint8Array = new Uint8Array(0);
  /** A view of `source`, to read whole words. */
  view: DataView = new DataView(this.source.buffer);
  domainStart = 0;
  domainEnd = 0;
  /** Two ASCII letters, the first one in the high byte; 0 if absent. */
  language = 0;
  /** Ordinal in the taxonomy; -1 if absent. */
  iabCategory = -1;
  /** Ordinals of the filtering categories, ascending, without duplicates. Only the first `filteringCount` are valid. */
  readonly filtering: Uint8Array = new Uint8Array(256);
  /** A view of `filtering`, to read whole words. */
  readonly filteringView: DataView = new DataView(this.filtering.buffer);
  filteringCount = 0;
  /** 0 to 1000; -1 if absent. */
  openPageRankHundredths = -1;
  /** From 1; 0 if absent. */
  globalRank = 0;
  /** The origins of this record's URLs (what precedes the domain), without duplicates: where each begins, and its size in bytes. */
  readonly originStarts: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly originSizes: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  /** Number of pages with each origin. */
  readonly originPages: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  originCount = 0;
  /** Ordinals of the page types, ascending, without duplicates. */
  readonly pageTypes: Uint8Array = new Uint8Array(PAGE_TYPES_MAX);
  /** The ranges of the pages' URLs. */
  readonly pageStarts: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly pageEnds: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  /** Index of the origin of each page's URL in the origins above, or `OFF_DOMAIN`. */
  readonly pageOrigins: Int8Array = new Int8Array(PAGE_TYPES_MAX);
  /** For each page, the number of the template (of those without an origin of their own) for its path, `NO_TEMPLATE` or `TEMPLATE_UNKNOWN`. */
  readonly pageTemplates: Int16Array = new Int16Array(PAGE_TYPES_MAX);
  pageCount = 0;

  /** Clears the fields and begins a new record whose bytes are in `source`. */
  begin(source: Uint8Array): void {
    if (source !== this.source) {
      this.source = source;
      this.view = new DataView(source.buffer, source.byteOffset, source.byteLength);
    }
    this.language = 0;
    this.iabCategory = -1;
    this.filteringCount = 0;
    this.openPageRankHundredths = -1;
    this.globalRank = 0;
    this.originCount = 0;
    this.pageCount = 0;
  }

  /** Adds an origin that the record does not have yet. Returns its index. */
  addOrigin(start: number, size: number): number {
    this.originStarts[this.originCount] = start;
    this.originSizes[this.originCount] = size;
    this.originPages[this.originCount] = 0;
    this.originCount += 1;
    return this.originCount - 1;
  }

  /** Adds a page and keeps the types in order. If the record has the type already, adds nothing and returns false. */
  addPage(type: number, start: number, end: number, origin: number, template: number): boolean {
    const { pageTypes, pageStarts, pageEnds, pageOrigins, pageTemplates } = this;
    let place = this.pageCount;
    while (place > 0 && pageTypes[place - 1]! > type) place -= 1;
    if (place > 0 && pageTypes[place - 1] === type) return false;
    for (let i = this.pageCount; i > place; i--) {
      pageTypes[i] = pageTypes[i - 1]!;
      pageStarts[i] = pageStarts[i - 1]!;
      pageEnds[i] = pageEnds[i - 1]!;
      pageOrigins[i] = pageOrigins[i - 1]!;
      pageTemplates[i] = pageTemplates[i - 1]!;
    }
    pageTypes[place] = type;
    pageStarts[place] = start;
    pageEnds[place] = end;
    pageOrigins[place] = origin;
    pageTemplates[place] = template;
    if (origin !== OFF_DOMAIN) this.originPages[origin] = this.originPages[origin]! + 1;
    this.pageCount += 1;
    return true;
  }
}

const scratch = Buffer.alloc(256 * 1024);

/** Fills the fields from an entry. They are valid until the next call. */
export function fieldsFromEntry(entry: Entry, fields: RecordFields): void {
  fields.begin(scratch);
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
    fields.addPage(ordinal, start, at, originOf(fields, start, at), TEMPLATE_UNKNOWN);
  }
}

/** Returns the index of the origin of the URL `[start, end)`, or `OFF_DOMAIN`. Adds the origin if it is new. */
function originOf(fields: RecordFields, start: number, end: number): number {
  const { source, domainStart, domainEnd, originStarts, originSizes } = fields;
  const found = findDomainInUrl(source, start, end, source, domainStart, domainEnd);
  if (found === -1) return OFF_DOMAIN;
  for (let i = 0; i < fields.originCount; i++) {
    if (originSizes[i] !== found - start) continue;
    let same = 0;
    while (start + same < found && source[start + same] === source[originStarts[i]! + same]) same += 1;
    if (start + same === found) return i;
  }
  return fields.addOrigin(start, found - start);
}
