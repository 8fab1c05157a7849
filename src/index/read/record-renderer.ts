/** Renders a parsed record: as JSON bytes for an answer, or as an object. */

import { BACKSLASH, COMMA, QUOTE } from '../../bytes/ascii.ts';
import { writeDecimal, writeHundredths } from '../../bytes/decimal.ts';
import { copyPiece, copyRange, type Piece, pieceOf } from '../../bytes/json-pieces.ts';
import type { DomainRecord, PageFilter, PageUrl } from '../../record/types.ts';
import { PAGE_TYPES_MAX, SYMBOL_CODE, SYMBOL_MAX_BYTES, URL_MAX_BYTES } from '../format/layout.ts';
import { isPlain } from '../format/symbol-table.ts';
import { type RecordDecoder, URL_KIND } from './record-decoder.ts';
import type { RenderTables } from './render-tables.ts';

const NO_PAGES: readonly PageUrl[] = Object.freeze([]);
const NO_CATEGORIES: readonly string[] = Object.freeze([]);

/** Renders the record that its decoder has parsed. */
export class RecordRenderer {
  readonly #tables: RenderTables;
  readonly #record: RecordDecoder;
  readonly #urlScratch: Uint8Array = new Uint8Array(2 * (URL_MAX_BYTES + 1024));
  readonly #urlView: DataView = new DataView(this.#urlScratch.buffer, this.#urlScratch.byteOffset);
  /** The last prefix (origin and domain) written to the answer: its origin, or -1 if there is none, and its range in the answer. */
  #prefixOrigin = -1;
  #prefixStart = 0;
  #prefixEnd = 0;
  /** Where the URLs of the pages begin and end in the last head written. */
  readonly #starts: Uint32Array = new Uint32Array(PAGE_TYPES_MAX);
  readonly #ends: Uint32Array = new Uint32Array(PAGE_TYPES_MAX);

  constructor(tables: RenderTables, record: RecordDecoder) {
    this.#tables = tables;
    this.#record = record;
  }

  /** Writes `{"domain":"…","found":true[,"language":"…"],"page_types":{…}` and returns its end. */
  writeHead(out: DataView, start: number): number {
    return this.#writeHead(FOUND, out, start);
  }

  /** Returns the size of head and tail together, without writing them. */
  answerSize(): number {
    const record = this.#record;
    const tables = this.#tables;
    let size = HEAD.size + record.domainSize + FOUND.size + PAGE_TYPES.size + 2 + record.literalTextSize;
    if (record.pageCount > 0) size += 1;
    if (record.language !== 0) size += tables.languages[record.language - 1]!.size;
    for (let i = 0; i < record.pageCount; i++) {
      const type = record.types[i]!;
      size += (i === 0 ? tables.firstKeys : tables.nextKeys)[type]!.size;
      if (record.kinds[i] === URL_KIND.full) continue;
      size += tables.origins[record.origins[i]!]!.size + record.domainSize;
      if (record.kinds[i] === URL_KIND.template) size += pathSize(tables.pathStarts[type]!, record.values[i]!);
    }
    if (record.iab !== 0) size += tables.iab[record.iab - 1]!.size;
    if (record.filteringCount > 0) size += FILTERING.size + record.filteringCount;
    for (let i = 0; i < record.filteringCount; i++) {
      size += tables.filtering[record.filtering[record.filteringStart + i]!]!.size;
    }
    if (record.hundredths >= 0) size += OPEN_PAGE_RANK.size + writeHundredths(record.hundredths, number, 0);
    if (record.globalRank > 0) size += GLOBAL_RANK.size + writeDecimal(record.globalRank, number, 0);
    return size;
  }

  /** Writes the record as an entry of a drop, a line without its end: head and tail without `found`. Returns its end. */
  writeEntry(out: DataView, start: number): number {
    return this.writeTail(out, this.#writeHead(DOMAIN_END, out, start));
  }

  #writeHead(afterDomain: Piece, out: DataView, start: number): number {
    const record = this.#record;
    let at = copyPiece(HEAD, out, start);
    at = this.#writeDomain(out, at);
    at = copyPiece(afterDomain, out, at);
    if (record.language !== 0) at = copyPiece(this.#tables.languages[record.language - 1]!, out, at);
    at = copyPiece(PAGE_TYPES, out, at);
    const { firstKeys, nextKeys } = this.#tables;
    this.#prefixOrigin = -1;
    for (let i = 0; i < record.pageCount; i++) {
      at = copyPiece((i === 0 ? firstKeys : nextKeys)[record.types[i]!]!, out, at);
      this.#starts[i] = at;
      at = this.#writeUrl(i, out, at);
      this.#ends[i] = at;
    }
    if (record.pageCount > 0) out.setUint8(at++, QUOTE);
    out.setUint8(at++, 0x7d);
    return at;
  }

  /** Writes `,"iab_category":…,"filtering_categories":…,"open_page_rank":…,"global_rank":…}` and returns its end. */
  writeTail(out: DataView, start: number): number {
    const record = this.#record;
    let at = start;
    if (record.iab !== 0) at = copyPiece(this.#tables.iab[record.iab - 1]!, out, at);
    if (record.filteringCount > 0) {
      at = copyPiece(FILTERING, out, at);
      for (let i = 0; i < record.filteringCount; i++) {
        if (i > 0) out.setUint8(at++, COMMA);
        at = copyPiece(this.#tables.filtering[record.filtering[record.filteringStart + i]!]!, out, at);
      }
      out.setUint8(at++, 0x5d);
    }
    if (record.hundredths >= 0) {
      at = copyPiece(OPEN_PAGE_RANK, out, at);
      at = writeHundredths(record.hundredths, out, at);
    }
    if (record.globalRank > 0) {
      at = copyPiece(GLOBAL_RANK, out, at);
      at = writeDecimal(record.globalRank, out, at);
    }
    out.setUint8(at++, 0x7d);
    return at;
  }

  #writeDomain(out: DataView, start: number): number {
    const { domainView, domainSize } = this.#record;
    return copyRange(domainView, 0, domainSize, out, start);
  }

  /** Writes the URL of page `i` with JSON escapes. */
  #writeUrl(i: number, out: DataView, start: number): number {
    const record = this.#record;
    const kind = record.kinds[i]!;
    let at = start;
    if (kind !== URL_KIND.full) {
      at = this.#writePrefix(record.origins[i]!, out, at);
      if (kind === URL_KIND.template) return this.#writePath(record.types[i]!, record.values[i]!, out, at);
    }
    const bytes = record.bytes;
    const { lengths, view: symbols } = this.#tables.dictionary.textSymbols;
    const end = record.ends[i]!;
    for (let read = record.values[i]!; read < end; read++) {
      const code = bytes[read]!;
      if (code >= SYMBOL_CODE.first) {
        at = copyRange(symbols, code * SYMBOL_MAX_BYTES, code * SYMBOL_MAX_BYTES + lengths[code]!, out, at);
      } else if (code === SYMBOL_CODE.domain) {
        at = this.#writeDomain(out, at);
      } else {
        const byte = bytes[++read]!;
        if (!isPlain(byte)) out.setUint8(at++, BACKSLASH);
        out.setUint8(at++, byte);
      }
    }
    return at;
  }

  /** Writes origin and domain. Most pages of a record have the same, so they are copied from the previous page. */
  #writePrefix(origin: number, out: DataView, start: number): number {
    if (origin === this.#prefixOrigin) return copyRange(out, this.#prefixStart, this.#prefixEnd, out, start);
    const end = this.#writeDomain(out, copyPiece(this.#tables.origins[origin]!, out, start));
    this.#prefixOrigin = origin;
    this.#prefixStart = start;
    this.#prefixEnd = end;
    return end;
  }

  #writePath(type: number, template: number, out: DataView, start: number): number {
    const starts = this.#tables.pathStarts[type]!;
    return copyRange(this.#tables.paths[type]!.view, starts[template]!, starts[template + 1]!, out, start);
  }

  pageUrls(): PageUrl[] {
    const record = this.#record;
    const pages: PageUrl[] = [];
    const { pageTypes } = this.#tables.metadata.vocabulary;
    const scratch = this.#urlScratch;
    for (let i = 0; i < record.pageCount; i++) {
      this.#prefixOrigin = -1;
      const text = latin1(scratch, this.#writeUrl(i, this.#urlView, 0));
      pages.push({ type: pageTypes[record.types[i]!]!, url: unescaped(text) });
    }
    return pages;
  }

  /** Returns the pages that may matter. Reads them from the record's head, which must be the last head written, in `out`. */
  pageUrlsInHead(out: Buffer, mayMatter: PageFilter): readonly PageUrl[] {
    const { pageCount, types, kinds, origins } = this.#record;
    const { pageTypes } = this.#tables.metadata.vocabulary;
    let pages: PageUrl[] | undefined;
    let originBefore = -1;
    for (let i = 0; i < pageCount; i++) {
      const start = this.#starts[i]!;
      const end = this.#ends[i]!;
      const origin = kinds[i] === URL_KIND.full ? -1 : origins[i]!;
      const isHostOfBefore = origin >= 0 && origin === originBefore;
      originBefore = origin;
      if (!mayMatter(out, start, end, isHostOfBefore)) continue;
      pages ??= [];
      pages.push({ type: pageTypes[types[i]!]!, url: unescaped(out.toString('latin1', start, end)) });
    }
    return pages ?? NO_PAGES;
  }

  filteringCategories(): readonly string[] {
    const { filtering, filteringStart, filteringCount } = this.#record;
    const { names } = this.#tables.metadata.filtering;
    if (filteringCount === 0) return NO_CATEGORIES;
    const found: string[] = [];
    for (let i = 0; i < filteringCount; i++) found.push(names[filtering[filteringStart + i]!]!);
    return found;
  }

  domainText(): string {
    const record = this.#record;
    return latin1(record.domain, record.domainSize);
  }

  toObject(): DomainRecord {
    const record = this.#record;
    const { dictionary, metadata } = this.#tables;
    return {
      domain: this.domainText(),
      ...(record.language === 0 ? {} : { language: dictionary.languages[record.language - 1]! }),
      pageTypes: this.pageUrls(),
      ...(record.iab === 0 ? {} : { iabCategory: metadata.iab.names[dictionary.iabOrder[record.iab - 1]!]! }),
      ...(record.filteringCount === 0 ? {} : { filteringCategories: this.filteringCategories() }),
      ...(record.hundredths < 0 ? {} : { openPageRank: record.hundredths / 100 }),
      ...(record.globalRank === 0 ? {} : { globalRank: record.globalRank }),
    };
  }
}

/** Scratch space to find out how long a number is. */
const number = new DataView(new ArrayBuffer(16));
const HEAD = pieceOf('{"domain":"');
const FOUND = pieceOf('","found":true');
const DOMAIN_END = pieceOf('"');
const PAGE_TYPES = pieceOf(',"page_types":{');
const FILTERING = pieceOf(',"filtering_categories":[');
const OPEN_PAGE_RANK = pieceOf(',"open_page_rank":');
const GLOBAL_RANK = pieceOf(',"global_rank":');

function pathSize(starts: Uint32Array, template: number): number {
  return starts[template + 1]! - starts[template]!;
}

/** Removes the JSON escapes of a text. */
function unescaped(text: string): string {
  return text.includes('\\') ? text.replace(/\\(.)/g, '$1') : text;
}

function latin1(bytes: Uint8Array, size: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, size).toString('latin1');
}
