/**
 * Parses the bytes of a record. See FORMAT.md, "Record". The bytes are not trusted: `parse` walks the whole record and checks every number
 * against the dictionary, before anything is rendered. The counterpart of record-encoder.ts.
 */
import { COPY_SLACK_BYTES } from '../../bytes/json-pieces.ts';
import {
  DOMAIN_MAX_BYTES,
  FACTS,
  INHERITED_ORIGIN,
  ORDINAL_WIDE,
  PAGE_TYPES_MAX,
  SET_CODE,
  SYMBOL_CODE,
  URL_CODE,
  URL_MAX_BYTES,
} from '../format/layout.ts';
import { isPlain } from '../format/symbol-table.ts';
import type { RenderTables } from './render-tables.ts';

/** Kinds of parsed URLs: a path template, a literal path, or a literal URL. */
export const URL_KIND = { template: 0, path: 1, full: 2 } as const;

/** A record is invalid; the message is the reason. The reader converts it to record_corrupt. */
export class ImpossibleRecord extends Error {}

/** Sizes of a record's parts, in bytes. */
export interface RecordParts {
  domain: number;
  facts: number;
  templates: number;
  literals: number;
  padding: number;
}

/** A parsed record. One object is reused for all records. The renderer (record-renderer.ts) reads it while `bytes` is unchanged. */
export class RecordDecoder {
  readonly #tables: RenderTables;
  readonly #bitmapSize: number;
  readonly #typeCount: number;
  /** The bytes that contain the last record parsed. */
  bytes: Uint8Array = new Uint8Array(0);
  /** The decoded domain, from index 0. */
  readonly domain: Uint8Array = new Uint8Array(DOMAIN_MAX_BYTES + COPY_SLACK_BYTES);
  /** A view of `domain`, for copying. */
  readonly domainView: DataView = new DataView(this.domain.buffer);
  domainSize = 0;
  /** 1 + position in the dictionary; 0 if unknown. */
  language = 0;
  /** 1 + position in the dictionary's `iabOrder`; 0 if unknown. */
  iab = 0;
  /** Ordinals of filtering categories, from `filteringStart` on. */
  filtering: Uint8Array = new Uint8Array(0);
  filteringStart = 0;
  filteringCount = 0;
  /** -1 if unknown. */
  hundredths = -1;
  /** 0 if unknown. */
  globalRank = 0;
  origin = 0;
  pageCount = 0;
  /** For each page: its type, the kind of its URL, its origin, … */
  readonly types: Uint8Array = new Uint8Array(PAGE_TYPES_MAX);
  readonly kinds: Uint8Array = new Uint8Array(PAGE_TYPES_MAX);
  readonly origins: Uint8Array = new Uint8Array(PAGE_TYPES_MAX);
  /** … the template, or where in `bytes` the literal begins, and where it ends. */
  readonly values: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly ends: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  #next = 0;

  constructor(tables: RenderTables) {
    this.#tables = tables;
    this.#typeCount = tables.firstKeys.length;
    this.#bitmapSize = Math.ceil(this.#typeCount / 8);
  }

  /** Size of all literals of the last record parsed, as text in JSON, in bytes. */
  literalTextSize = 0;

  /** Sizes of the parts of the last record parsed, in bytes. */
  readonly parts: RecordParts = {
    domain: 0,
    facts: 0,
    templates: 0,
    literals: 0,
    padding: 0,
  };

  /**
   * Parses `bytes[start, end)`, a stored record without its CRC-8.
   *
   * @throws ImpossibleRecord
   */
  parse(bytes: Uint8Array, start: number, end: number): void {
    if (start < 0 || end > bytes.length || start >= end) throw new ImpossibleRecord('it lies outside the payload');
    this.bytes = bytes;
    let at = this.#parseDomain(start, end);
    this.parts.domain = at - start;
    const factsStart = at;
    const bitmap = at + 2;
    at = this.#parseFacts(at, end);
    this.parts.facts = at - factsStart;
    this.parts.templates = 0;
    this.parts.literals = 0;
    this.literalTextSize = 0;
    this.#next = at;
    this.#parsePages(bitmap, end);
    this.parts.padding = end - this.#next;
    for (let i = this.#next; i < end; i++) if (bytes[i] !== 0) throw new ImpossibleRecord('its padding is not zero');
  }

  #parseDomain(start: number, end: number): number {
    const bytes = this.bytes;
    const { lengths, bytes: symbols } = this.#tables.dictionary.domainSymbols;
    const codesEnd = start + 1 + bytes[start]!;
    // At least the facts, the bitmap and three codes of one byte follow the domain.
    if (codesEnd === start + 1 || codesEnd + 2 + this.#bitmapSize + 3 > end)
      throw new ImpossibleRecord('its domain does not fit');
    const { domain } = this;
    let to = 0;
    for (let at = start + 1; at < codesEnd; at++) {
      const code = bytes[at]!;
      const size = lengths[code]!;
      if (size === 0) throw new ImpossibleRecord('its domain has an unknown symbol');
      if (to + size > DOMAIN_MAX_BYTES) throw new ImpossibleRecord('its domain is too long');
      const from = code * 8;
      for (let i = 0; i < size; i++) domain[to++] = symbols[from + i]!;
    }
    this.domainSize = to;
    return codesEnd;
  }

  #parseFacts(start: number, end: number): number {
    const bytes = this.bytes;
    const { dictionary } = this.#tables;
    const facts = bytes[start]! | (bytes[start + 1]! << 8);
    const hundredths = facts & FACTS.rankMask;
    if (hundredths > 1000 && hundredths !== FACTS.rankAbsent) throw new ImpossibleRecord('its page rank is above 10');
    this.hundredths = hundredths === FACTS.rankAbsent ? -1 : hundredths;
    const rankBytes = (facts >>> FACTS.globalRankShift) & FACTS.globalRankMask;
    if (rankBytes > FACTS.globalRankMaxBytes) throw new ImpossibleRecord('its global rank is too long');
    this.origin = (facts >>> FACTS.originShift) & FACTS.originMask;
    if (this.origin >= dictionary.origins.length) throw new ImpossibleRecord('its origin is not in the dictionary');
    this.#next = start + 2 + this.#bitmapSize;
    this.language = bytes[this.#next++]!;
    if (this.language > dictionary.languages.length)
      throw new ImpossibleRecord('its language is not in the dictionary');
    this.iab = this.#readOrdinal(end);
    if (this.iab > dictionary.iabOrder.length) throw new ImpossibleRecord('its IAB category is not in the dictionary');
    this.#parseFiltering(end);
    if (this.#next + rankBytes > end) throw new ImpossibleRecord('its global rank does not fit');
    let rank = 0;
    for (let i = rankBytes - 1; i >= 0; i--) rank = rank * 256 + bytes[this.#next + i]!;
    if (rankBytes > 0 && bytes[this.#next + rankBytes - 1] === 0)
      throw new ImpossibleRecord('its global rank has a leading zero');
    this.globalRank = rank;
    return this.#next + rankBytes;
  }

  #parseFiltering(end: number): void {
    const code = this.#readOrdinal(end);
    this.filteringCount = 0;
    if (code === SET_CODE.none) return;
    if (code !== SET_CODE.literal) {
      const set = this.#tables.filteringSets[code - SET_CODE.firstTable];
      if (set === undefined) throw new ImpossibleRecord('its filtering categories are not in the dictionary');
      this.filtering = set;
      this.filteringStart = 0;
      this.filteringCount = set.length;
      return;
    }
    const bytes = this.bytes;
    const count = this.#next < end ? bytes[this.#next++]! : 0;
    if (count === 0 || this.#next + count > end) throw new ImpossibleRecord('its filtering categories do not fit');
    let previous = -1;
    for (let i = 0; i < count; i++) {
      const ordinal = bytes[this.#next + i]!;
      if (ordinal <= previous || ordinal >= this.#tables.filtering.length) {
        throw new ImpossibleRecord('its filtering categories are not an ascending list of known ones');
      }
      previous = ordinal;
    }
    this.filtering = bytes;
    this.filteringStart = this.#next;
    this.filteringCount = count;
    this.#next += count;
  }

  #parsePages(bitmap: number, end: number): void {
    const bytes = this.bytes;
    let count = 0;
    for (let i = 0; i < this.#bitmapSize; i++) {
      let bits = bytes[bitmap + i]!;
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits & -bits);
        bits &= bits - 1;
        const type = i * 8 + bit;
        if (type >= this.#typeCount) throw new ImpossibleRecord('it has a page type that the vocabulary has not');
        this.types[count] = type;
        const from = this.#next;
        const kind = this.#parseUrl(count, type, end);
        if (kind === URL_KIND.template) this.parts.templates += this.#next - from;
        else this.parts.literals += this.#next - from;
        count++;
      }
    }
    this.pageCount = count;
  }

  #parseUrl(i: number, type: number, end: number): number {
    let code = this.#readOrdinal(end);
    let origin = this.origin;
    if (code === URL_CODE.otherOrigin) {
      origin = this.#next < end ? this.bytes[this.#next++]! : INHERITED_ORIGIN;
      if (origin >= this.#tables.origins.length)
        throw new ImpossibleRecord('the origin of a page is not in the dictionary');
      code = this.#readOrdinal(end);
      if (code === URL_CODE.otherOrigin || code === URL_CODE.fullLiteral)
        throw new ImpossibleRecord('a page has two origins');
    }
    let kind: number = URL_KIND.template;
    if (code < URL_CODE.firstTemplate) {
      kind = code === URL_CODE.fullLiteral ? URL_KIND.full : URL_KIND.path;
      this.#parseLiteral(i, end);
    } else {
      const template = code - URL_CODE.firstTemplate;
      const templateOrigin = this.#tables.templateOrigins[type]![template];
      if (templateOrigin === undefined) throw new ImpossibleRecord('the template of a page is not in the dictionary');
      if (templateOrigin !== INHERITED_ORIGIN) origin = templateOrigin;
      this.values[i] = template;
    }
    this.kinds[i] = kind;
    this.origins[i] = origin;
    return kind;
  }

  /** Parses a literal. Checks its codes and the length of its text. */
  #parseLiteral(i: number, end: number): void {
    const bytes = this.bytes;
    let size = this.#next < end ? bytes[this.#next++]! : 0;
    if (size >= 128) size = (size & 127) | ((this.#next < end ? bytes[this.#next++]! : 0) << 7);
    const to = this.#next + size;
    if (to > end) throw new ImpossibleRecord('a literal does not fit');
    const { lengths } = this.#tables.dictionary.textSymbols;
    let textSize = 0;
    for (let at = this.#next; at < to; at++) {
      const code = bytes[at]!;
      if (code === SYMBOL_CODE.domain) {
        textSize += this.domainSize;
      } else if (code === SYMBOL_CODE.escape) {
        at++;
        const byte = at < to ? bytes[at]! : 0;
        if (byte <= 0x20 || byte >= 0x7f) throw new ImpossibleRecord('a literal has a character that no URL has');
        textSize += 1;
        if (!isPlain(byte)) this.literalTextSize += 1;
      } else {
        const length = lengths[code]!;
        if (length === 0) throw new ImpossibleRecord('a literal has an unknown symbol');
        textSize += length;
      }
    }
    if (textSize > URL_MAX_BYTES) throw new ImpossibleRecord('a URL is too long');
    this.literalTextSize += textSize;
    this.values[i] = this.#next;
    this.ends[i] = to;
    this.#next = to;
  }

  #readOrdinal(end: number): number {
    if (this.#next >= end) throw new ImpossibleRecord('it ends too early');
    const first = this.bytes[this.#next++]!;
    if (first < ORDINAL_WIDE) return first;
    if (this.#next >= end) throw new ImpossibleRecord('it ends too early');
    return ORDINAL_WIDE + ((first - ORDINAL_WIDE) << 8) + this.bytes[this.#next++]!;
  }
}
