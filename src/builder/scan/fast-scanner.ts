/**
 * A fast path for lines as a careful vendor writes them, parsed from bytes directly into fields: compact JSON, `domain` first, every value
 * in the form that the index stores. It also makes the two most frequent repairs. It parses a line completely or not at all: for anything
 * that it does not know, valid or not, `scan` returns false and parseEntry decides. If it returns true, parseEntry finds the same entry,
 * the same repairs and no rejects. A fuzz test checks that.
 */

import { ByteKey, ByteMap, NOT_FOUND } from '../../bytes/byte-map.ts';
import { isPublicSuffix } from '../../domain/public-suffix.ts';
import type { Dictionary, RecordFields } from '../../index/write.ts';
import { LINE_MAX_BYTES } from '../../record/entry.ts';
import { languages } from '../../record/language-codes.ts';
import type { Repair } from '../../record/reject-reasons.ts';
import { filteringTaxonomy, iabCategories } from '../../record/taxonomy.ts';
import type { VocabularyScope } from '../../record/vocabulary.ts';
import { FixedText, hostEnd, startsWithWww } from './host-bytes.ts';
import { PageScanner } from './page-scanner.ts';

// Each of page-scanner.ts, host-bytes.ts and this file declares its own constants: imported ones make a scan several percent slower.
const QUOTE = 0x22;
const COMMA = 0x2c;
const DOT = 0x2e;
const SLASH = 0x2f;
const ZERO = 0x30;
const NINE = 0x39;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_CLOSE = 0x7d;

const LANGUAGES = new Uint8Array(0x1_0000);
for (const code of languages) LANGUAGES[(code.charCodeAt(0) << 8) | code.charCodeAt(1)] = 1;

const isPlainText = (text: string): boolean => /^[ !#-[\]-~]+$/.test(text);

function ordinals(entries: readonly (readonly [string, number])[]): ByteMap {
  const first = new Map<string, number>();
  for (const [text, value] of entries) if (isPlainText(text) && !first.has(text)) first.set(text, value);
  return new ByteMap([...first].map(([text, value]) => ({ tag: 0, text, value })));
}

const IAB = ordinals(
  iabCategories.flatMap(({ id, path }, i): [string, number][] => [
    [id, i],
    [path, i],
  ]),
);
const FILTERING = ordinals(
  filteringTaxonomy.flatMap(({ id, name }, i): [string, number][] => [
    [id, i],
    [name, i],
  ]),
);

const FIELD = {
  language: 1,
  page_types: 2,
  iab_category: 3,
  filtering_categories: 4,
  open_page_rank: 5,
  global_rank: 6,
};
/** The fields' first letters differ. */
const FIELD_OF_LETTER = new Uint8Array(256);
/** The name of each field, with quotes and colon. */
const FIELD_NAMES: FixedText[] = [];
for (const [name, field] of Object.entries(FIELD)) {
  FIELD_OF_LETTER[name.charCodeAt(0)] = field;
  FIELD_NAMES[field] = new FixedText(`"${name}":`);
}
const START = new FixedText('{"domain":"');

/** Maximum number of repairs of one line. Lines that need more are left to parseEntry. */
const REPAIRS_MAX = 64;

/** Scans lines, one at a time, into the same fields. */
export class FastScanner {
  /** Repairs made on the last line scanned. */
  readonly repairs: Repair[] = [];
  readonly #fields: RecordFields;
  readonly #pages: PageScanner;
  /** Holds a repaired line. */
  readonly #scratch: Buffer = Buffer.alloc(LINE_MAX_BYTES + REPAIRS_MAX + 8);
  #buffer: Buffer = this.#scratch;
  readonly #text = new ByteKey();

  /**
   * @param fields are filled by each scan; their ranges refer to `fields.source`
   * @param pathTemplates must be those of the dictionary that the fields are encoded with
   */
  constructor(fields: RecordFields, scope: VocabularyScope, pathTemplates?: Dictionary['pathTemplates']) {
    this.#fields = fields;
    this.#pages = new PageScanner(fields, scope, pathTemplates);
  }

  /**
   * Scans the line `buffer[start, end)`. Returns true if the fields are filled; they are valid until the next call, and as long as the buffer
   * is unchanged. Returns false if the caller must use parseEntry.
   */
  scan(buffer: Buffer, start: number, end: number): boolean {
    if (this.repairs.length > 0) this.repairs.length = 0;
    if (this.#scanOnce(buffer, start, end)) return true;
    let size = end - start;
    while (this.#pages.slashAt !== NOT_FOUND && this.repairs.length < REPAIRS_MAX && size <= LINE_MAX_BYTES) {
      size = this.#insertSlash(size, start);
      this.repairs.length = 0;
      if (this.#scanOnce(this.#scratch, 0, size)) {
        for (let inserted = size - (end - start); inserted > 0; inserted--) this.repairs.push('page_url_canonicalized');
        return true;
      }
    }
    return false;
  }

  /** Copies the line to the scratch buffer, with the missing slash inserted. Returns its new size. */
  #insertSlash(size: number, start: number): number {
    const from = this.#buffer;
    const lineStart = from === this.#scratch ? 0 : start;
    const at = this.#pages.slashAt - lineStart;
    from.copy(this.#scratch, at + 1, lineStart + at, lineStart + size);
    if (from !== this.#scratch) from.copy(this.#scratch, 0, lineStart, lineStart + at);
    this.#scratch[at] = SLASH;
    return size + 1;
  }

  #scanOnce(buffer: Buffer, start: number, end: number): boolean {
    const fields = this.#fields;
    this.#buffer = buffer;
    this.#pages.begin();
    fields.begin(buffer);
    const { view } = fields;
    if (buffer[end - 1] !== BRACE_CLOSE || !START.isAt(view, start, end)) return false;
    fields.domainStart = start + START.size;
    let at = hostEnd(buffer, fields.domainStart, end);
    if (at === NOT_FOUND || buffer[at] !== QUOTE) return false;
    fields.domainEnd = at;
    if (startsWithWww(buffer, fields.domainStart) && !this.#stripWww()) return false;
    at += 1;
    let seen = 0;
    // The methods that read values never pass the brace that ends the line: they stop there, or return `NOT_FOUND`.
    while (buffer[at] === COMMA) {
      const field = FIELD_OF_LETTER[buffer[at + 2] ?? 0]!;
      if (field === 0 || (seen & (1 << field)) !== 0) return false;
      seen |= 1 << field;
      const name = FIELD_NAMES[field]!;
      if (!name.isAt(view, at + 1, end)) return false;
      at = this.#value(field, at + 1 + name.size, end);
      if (at === NOT_FOUND) return false;
    }
    return at === end - 1;
  }

  /** Strips `www.` as the domain module does. False if it must stay, because a public suffix or a single label follows. */
  #stripWww(): boolean {
    const fields = this.#fields;
    const buffer = this.#buffer;
    while (startsWithWww(buffer, fields.domainStart)) {
      const rest = buffer.toString('latin1', fields.domainStart + 4, fields.domainEnd);
      if (!rest.includes('.') || isPublicSuffix(rest, { private: false })) return false;
      fields.domainStart += 4;
    }
    this.repairs.push('domain_www_stripped');
    return true;
  }

  #value(field: number, at: number, end: number): number {
    switch (field) {
      case FIELD.page_types:
        return this.#pages.scan(at, end);
      case FIELD.language:
        return this.#language(at, end);
      case FIELD.iab_category:
        return this.#iabCategory(at, end);
      case FIELD.filtering_categories:
        return this.#filteringCategories(at, end);
      case FIELD.open_page_rank:
        return this.#openPageRank(at);
      default:
        return this.#globalRank(at);
    }
  }

  #language(at: number, end: number): number {
    const buffer = this.#buffer;
    if (at + 4 > end || buffer[at] !== QUOTE || buffer[at + 3] !== QUOTE) return NOT_FOUND;
    const code = (buffer[at + 1]! << 8) | buffer[at + 2]!;
    if (LANGUAGES[code] === 0) return NOT_FOUND;
    this.#fields.language = code;
    return at + 4;
  }

  #iabCategory(at: number, end: number): number {
    const { view } = this.#fields;
    if (this.#buffer[at] !== QUOTE) return NOT_FOUND;
    const close = this.#text.takeQuoted(view, at + 1, end);
    if (close === NOT_FOUND) return NOT_FOUND;
    const ordinal = IAB.get(0, this.#text);
    if (ordinal === NOT_FOUND) return NOT_FOUND;
    this.#fields.iabCategory = ordinal;
    return close + 1;
  }

  #filteringCategories(start: number, end: number): number {
    const buffer = this.#buffer;
    const { view } = this.#fields;
    if (buffer[start] !== BRACKET_OPEN) return NOT_FOUND;
    if (buffer[start + 1] === BRACKET_CLOSE) return start + 2;
    let at = start;
    do {
      if (buffer[at + 1] !== QUOTE) return NOT_FOUND;
      const close = this.#text.takeQuoted(view, at + 2, end);
      if (close === NOT_FOUND) return NOT_FOUND;
      const ordinal = FILTERING.get(0, this.#text);
      if (ordinal === NOT_FOUND || !this.#addFiltering(ordinal)) return NOT_FOUND;
      at = close + 1;
    } while (buffer[at] === COMMA);
    return buffer[at] === BRACKET_CLOSE ? at + 1 : NOT_FOUND;
  }

  /** Inserts an ordinal into the sorted list; false if the list has it already. */
  #addFiltering(ordinal: number): boolean {
    const { filtering } = this.#fields;
    let place = this.#fields.filteringCount;
    while (place > 0 && filtering[place - 1]! > ordinal) {
      filtering[place] = filtering[place - 1]!;
      place -= 1;
    }
    if (place > 0 && filtering[place - 1] === ordinal) return false;
    filtering[place] = ordinal;
    this.#fields.filteringCount += 1;
    return true;
  }

  /** Scans a number from 0 to 10 with up to two decimals. */
  #openPageRank(start: number): number {
    const buffer = this.#buffer;
    let at = start;
    const first = buffer[at]!;
    if (first < ZERO || first > NINE) return NOT_FOUND;
    let value = (first - ZERO) * 100;
    at += 1;
    if (first === ZERO + 1 && buffer[at] === ZERO) {
      value = 1000;
      at += 1;
    }
    if (buffer[at] === DOT) {
      let scale = 10;
      let digit = buffer[++at]!;
      if (digit < ZERO || digit > NINE) return NOT_FOUND;
      for (; digit >= ZERO && digit <= NINE; digit = buffer[++at]!) {
        value += (digit - ZERO) * scale;
        scale = scale === 10 ? 1 : 0;
        if (scale === 0) {
          at += 1;
          break;
        }
      }
    }
    if (value > 1000 || (buffer[at] !== COMMA && buffer[at] !== BRACE_CLOSE)) return NOT_FOUND;
    this.#fields.openPageRankHundredths = value;
    return at;
  }

  /** Scans a positive number of up to nine digits. */
  #globalRank(start: number): number {
    const buffer = this.#buffer;
    let at = start;
    let value = 0;
    if (buffer[at] === ZERO) return NOT_FOUND;
    for (let digit = buffer[at]!; digit >= ZERO && digit <= NINE && at < start + 9; digit = buffer[++at]!) {
      value = value * 10 + digit - ZERO;
    }
    if (at === start || (buffer[at] !== COMMA && buffer[at] !== BRACE_CLOSE)) return NOT_FOUND;
    this.#fields.globalRank = value;
    return at;
  }
}
