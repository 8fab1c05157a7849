/**
 * Encodes fields as the bytes of a record, without padding and CRC-8 (bucket-run.ts adds them). See FORMAT.md, "Record". Its counterpart is
 * record-decoder.ts.
 */

import { ByteKey, ByteMap } from '../../bytes/byte-map.ts';
import { PagegateError } from '../../errors.ts';
import type { RecordNames } from '../../record/names.ts';
import type { Dictionary } from '../format/dictionary.ts';
import {
  DOMAIN_MAX_BYTES,
  FACTS,
  INHERITED_ORIGIN,
  ORDINAL_WIDE,
  PAGE_TYPES_MAX,
  RECORD_MAX_BYTES,
  RECORD_ORIGINS,
  SET_CODE,
  SYMBOL_CODE,
  URL_CODE,
  URL_MAX_BYTES,
} from '../format/layout.ts';
import { AnswerSizes } from './answer-sizes.ts';
import { OFF_DOMAIN, type RecordFields, TEMPLATE_UNKNOWN } from './record-fields.ts';
import { SymbolEncoder } from './symbol-encoder.ts';

/** Size of the facts word, which precedes the bitmap of page types. */
const FACTS_BYTES = 2;

/** Encodes records, one at a time, into `out`. */
export class RecordEncoder {
  /** The bytes of the last record encoded. */
  readonly out: Uint8Array = new Uint8Array(RECORD_MAX_BYTES);
  /** Size of the largest answer (head and tail) that any record encoded so far can produce. The builder uses the maximum of all threads. */
  maxAnswerSizeBytes = 0;
  readonly #domainSymbols: SymbolEncoder;
  readonly #textSymbols: SymbolEncoder;
  readonly #origins: ByteMap;
  /** Numbers of the path templates. Tag: page type × 256 + origin. */
  readonly #pathTemplates: ByteMap;
  readonly #languages: Uint8Array = new Uint8Array(0x1_0000);
  readonly #iab: Int32Array = new Int32Array(0x1_0000).fill(-1);
  readonly #filteringSets: ByteMap;
  readonly #bitmapSize: number;
  readonly #answerSizes: AnswerSizes;
  /** Position of each origin of the record in the dictionary; -1 if the dictionary does not have it. */
  readonly #recordOrigins: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly #key = new ByteKey();

  /** @param names must be those that the dictionary was trained with */
  constructor(dictionary: Dictionary, names: RecordNames) {
    this.#domainSymbols = new SymbolEncoder(dictionary.domainSymbols);
    this.#textSymbols = new SymbolEncoder(dictionary.textSymbols);
    this.#origins = new ByteMap(dictionary.origins.map((text, value) => ({ tag: 0, text, value })));
    this.#pathTemplates = new ByteMap(
      dictionary.pathTemplates.flatMap((pathTemplates, type) =>
        pathTemplates.map(({ origin, path }, value) => ({ tag: type * 256 + origin, text: path, value })),
      ),
    );
    dictionary.languages.forEach((code, i) => {
      this.#languages[(code.charCodeAt(0) << 8) | code.charCodeAt(1)] = i + 1;
    });
    dictionary.iabOrder.forEach((ordinal, i) => {
      this.#iab[ordinal] = i + 1;
    });
    this.#filteringSets = new ByteMap(
      dictionary.filteringSets.map((set, value) => ({ tag: 0, text: String.fromCharCode(...set), value })),
    );
    this.#bitmapSize = Math.ceil(dictionary.pathTemplates.length / 8);
    this.#answerSizes = new AnswerSizes(names);
  }

  /**
   * Encodes a record and returns its size in bytes.
   *
   * @throws PagegateError index_limit if the format cannot represent the record
   */
  encode(fields: RecordFields): number {
    const out = this.out;
    const { source } = fields;
    const domainSize = fields.domainEnd - fields.domainStart;
    if (domainSize < 1 || domainSize > DOMAIN_MAX_BYTES) throw limit(`A domain has ${domainSize} bytes.`);
    this.#domainSymbols.escapes = 0;
    let at = this.#domainSymbols.encode(source, fields.domainStart, fields.domainEnd, out, 1);
    if (this.#domainSymbols.escapes > 0) throw limit('A domain has a character that no key has.');
    out[0] = at - 1;
    this.#textSymbols.escapes = 0;
    const origin = this.#chooseOrigin(fields);
    const bitmap = at + FACTS_BYTES;
    at = this.#writeFacts(fields, origin, at);
    let answerSize = this.#answerSizes.withoutPages(fields);
    for (let i = 0; i < fields.pageCount; i++) {
      const type = fields.pageTypes[i]!;
      const urlSize = fields.pageEnds[i]! - fields.pageStarts[i]!;
      if (type >= this.#bitmapSize * 8) throw limit(`There is no page type ${type} in this index's vocabulary.`);
      if (urlSize > URL_MAX_BYTES) throw limit(`A URL has ${urlSize} bytes, at most ${URL_MAX_BYTES} are possible.`);
      out[bitmap + (type >>> 3)] = out[bitmap + (type >>> 3)]! | (1 << (type & 7));
      answerSize += this.#answerSizes.ofPage(type, urlSize);
      at = this.#writeUrl(fields, i, type, origin, at);
    }
    if (at >= RECORD_MAX_BYTES) throw limit(`A record has ${at} bytes.`);
    answerSize += this.#textSymbols.escapes;
    if (answerSize > this.maxAnswerSizeBytes) this.maxAnswerSizeBytes = answerSize;
    return at;
  }

  /**
   * Looks up the record's origins in the dictionary. Returns the one that most of its URLs have (on a tie the first in the dictionary), or 0
   * if no origin can be a record's own.
   */
  #chooseOrigin({ view, originStarts, originSizes, originPages, originCount }: RecordFields): number {
    const origins = this.#recordOrigins;
    let best = 0;
    let bestPages = 0;
    for (let i = 0; i < originCount; i++) {
      const start = originStarts[i]!;
      this.#key.take(view, start, start + originSizes[i]!);
      const origin = this.#origins.get(0, this.#key);
      origins[i] = origin;
      if (origin < 0 || origin >= RECORD_ORIGINS) continue;
      const pages = originPages[i]!;
      if (pages < bestPages || (pages === bestPages && origin > best)) continue;
      best = origin;
      bestPages = pages;
    }
    return best;
  }

  /** Writes the facts, an empty bitmap of page types, and the fields from language to global rank. Returns their end. */
  #writeFacts(fields: RecordFields, origin: number, start: number): number {
    const out = this.out;
    const { globalRank, openPageRankHundredths: hundredths, iabCategory, filteringCount } = fields;
    const rankBytes =
      globalRank === 0 ? 0 : globalRank < 0x100 ? 1 : globalRank < 0x1_0000 ? 2 : globalRank < 0x100_0000 ? 3 : 4;
    const facts =
      (hundredths < 0 ? FACTS.rankAbsent : hundredths) |
      (rankBytes << FACTS.globalRankShift) |
      (origin << FACTS.originShift);
    let at = start;
    out[at++] = facts & 0xff;
    out[at++] = facts >>> 8;
    for (let i = 0; i < this.#bitmapSize; i++) out[at + i] = 0;
    at += this.#bitmapSize;
    const language = this.#languages[fields.language]!;
    if (fields.language !== 0 && language === 0) throw limit('A language is not in the dictionary.');
    out[at++] = language;
    const iab = iabCategory < 0 ? 0 : this.#iab[iabCategory]!;
    if (iab < 0) throw limit(`There is no IAB category ${iabCategory} in the dictionary.`);
    at = writeOrdinal(iab, out, at);
    if (filteringCount === 0) {
      out[at++] = SET_CODE.none;
    } else {
      this.#key.take(fields.filteringView, 0, filteringCount);
      const set = this.#filteringSets.get(0, this.#key);
      if (set >= 0) {
        at = writeOrdinal(set + SET_CODE.firstTable, out, at);
      } else {
        out[at++] = SET_CODE.literal;
        out[at++] = filteringCount;
        for (let i = 0; i < filteringCount; i++) out[at++] = fields.filtering[i]!;
      }
    }
    let rest = globalRank;
    for (let i = 0; i < rankBytes; i++) {
      out[at++] = rest & 0xff;
      rest >>>= 8;
    }
    return at;
  }

  #writeUrl(fields: RecordFields, i: number, type: number, recordOrigin: number, start: number): number {
    const { source, view } = fields;
    const out = this.out;
    const number = fields.pageOrigins[i]!;
    if (number === OFF_DOMAIN) {
      out[start] = URL_CODE.fullLiteral;
      return this.#writeLiteral(source, fields.pageStarts[i]!, fields.pageEnds[i]!, start + 1);
    }
    const origin = this.#recordOrigins[number]!;
    let inherited = fields.pageTemplates[i]!;
    if (inherited >= 0 && origin === recordOrigin) return writeTemplate(inherited, out, start);
    const urlStart = fields.pageStarts[i]!;
    const urlEnd = fields.pageEnds[i]!;
    const domain = urlStart + fields.originSizes[number]!;
    if (origin < 0) {
      out[start] = URL_CODE.fullLiteral;
      return this.#writeFullLiteral(fields, urlStart, urlEnd, domain, start + 1);
    }
    const path = domain + fields.domainEnd - fields.domainStart;
    if (inherited === TEMPLATE_UNKNOWN) {
      this.#key.take(view, path, urlEnd);
      inherited = this.#pathTemplates.get(type * 256 + INHERITED_ORIGIN, this.#key);
    }
    if (origin === recordOrigin) {
      if (inherited >= 0) return writeTemplate(inherited, out, start);
      out[start] = URL_CODE.pathLiteral;
      return this.#writeLiteral(source, path, urlEnd, start + 1);
    }
    this.#key.take(view, path, urlEnd);
    const template = this.#pathTemplates.get(type * 256 + origin, this.#key);
    if (template >= 0) return writeTemplate(template, out, start);
    out[start] = URL_CODE.otherOrigin;
    out[start + 1] = origin;
    if (inherited >= 0) return writeTemplate(inherited, out, start + 2);
    out[start + 2] = URL_CODE.pathLiteral;
    return this.#writeLiteral(source, path, urlEnd, start + 3);
  }

  /** Writes a literal: its size, then its codes. The size is written once it is known: in one byte below 128, otherwise in two. */
  #writeLiteral(source: Uint8Array, start: number, end: number, at: number): number {
    return this.#closeLiteral(at, this.#textSymbols.encode(source, start, end, this.out, at + 1));
  }

  #writeFullLiteral(fields: RecordFields, start: number, end: number, domain: number, at: number): number {
    const { source } = fields;
    let to = this.#textSymbols.encode(source, start, domain, this.out, at + 1);
    this.out[to++] = SYMBOL_CODE.domain;
    to = this.#textSymbols.encode(source, domain + fields.domainEnd - fields.domainStart, end, this.out, to);
    return this.#closeLiteral(at, to);
  }

  #closeLiteral(at: number, to: number): number {
    const out = this.out;
    const size = to - at - 1;
    if (size < 128) {
      out[at] = size;
      return to;
    }
    out.copyWithin(at + 2, at + 1, to);
    out[at] = 128 | (size & 127);
    out[at + 1] = size >>> 7;
    return to + 1;
  }
}

/** Writes an ordinal in one or two bytes and returns its end. */
function writeOrdinal(value: number, out: Uint8Array, at: number): number {
  if (value < ORDINAL_WIDE) {
    out[at] = value;
    return at + 1;
  }
  out[at] = ORDINAL_WIDE + ((value - ORDINAL_WIDE) >>> 8);
  out[at + 1] = (value - ORDINAL_WIDE) & 0xff;
  return at + 2;
}

function writeTemplate(template: number, out: Uint8Array, at: number): number {
  return writeOrdinal(template + URL_CODE.firstTemplate, out, at);
}

function limit(what: string): PagegateError {
  return new PagegateError('index_limit', what);
}
