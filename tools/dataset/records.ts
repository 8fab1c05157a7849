/** Writes records as lines of NDJSON, directly as bytes. Record `i` of `n` for a seed does not depend on any other. */

import * as choices from './choices.ts';
import { assumed } from './model.ts';
import { NameSource, writeNumber } from './names.ts';
import { Stream } from './random.ts';
import { Pool } from './weighted-choice.ts';

/** Longest line of a record. */
export const GENERATED_LINE_MAX_BYTES = 16_384;

const QUOTE = 0x22;
const COMMA = 0x2c;
const SLASH = 0x2f;
const DOT = 0x2e;
const CHANCE = 0x1_0000_0000;
const TYPES = choices.types.length;
const BASE36 = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz');

const TEXTS = {
  open: 0,
  pages: 1,
  endPages: 2,
  filtering: 3,
  endFiltering: 4,
  openPageRank: 5,
  globalRank: 6,
  end: 7,
  article: 8,
  query: 9,
  lang: 10,
  https: 11,
  index: 12,
  fragment: 13,
} as const;
const texts = new Pool([
  '{"domain":"',
  ',"page_types":{',
  '}',
  ',"filtering_categories":[',
  ']',
  ',"open_page_rank":',
  ',"global_rank":',
  '}\n',
  '/hc/en-us/articles/',
  '?id=',
  '&lang=en',
  '":"https://',
  '/index.php?page=',
  '/#/',
]);
const FIELDS = assumed.fields;

export class RecordSource {
  readonly records: number;
  readonly names: NameSource;
  readonly #stream = new Stream();
  readonly #seed: number;
  readonly #rankStride: number;
  readonly #ranked: number;
  #domainAt = 0;
  #domainEnd = 0;
  #registrableAt = 0;

  constructor(records: number, seed: number) {
    this.records = records;
    this.names = new NameSource(records, seed);
    this.#seed = seed ^ 0x2545f491;
    this.#rankStride = rankStride(records);
    this.#ranked = Math.floor(records * FIELDS.global_rank);
  }

  /** Writes record `i` with its line feed to `out` at `at`. Returns the offset after it. */
  write(i: number, out: Uint8Array, at: number): number {
    const stream = this.#stream;
    stream.restart(this.#seed, i);
    let to = texts.copy(TEXTS.open, out, at);
    this.#domainAt = to;
    to = this.names.write(i, out, to);
    this.#domainEnd = to;
    this.#registrableAt = this.names.registrableAt;
    out[to++] = QUOTE;
    if (stream.fraction() < FIELDS.language) {
      const wheel = this.names.isFamily ? choices.familyLanguages : choices.languageWheels[this.names.suffix]!;
      to = choices.languageFields.copy(wheel.table[(stream.bits() >>> 0) % wheel.size]!, out, to);
    }
    to = this.#writePages(out, to);
    return this.#writeFacts(i, out, to);
  }

  #writePages(out: Uint8Array, at: number): number {
    const stream = this.#stream;
    const site = stream.bits() >>> 0;
    const profile = choices.profileWheel.table[site & 1023]!;
    const below = this.#registrableAt !== this.#domainAt;
    const prefix = below ? choices.HTTPS_APEX : choices.sitePrefixWheel.table[(site >>> 10) & 1023]!;
    const ending = choices.endingWheel.table[(site >>> 20) & 255]!;
    const local = stream.fraction() < choices.LOCAL_SHARE ? choices.localeWheel.table[stream.bits() & 255]! : -1;
    let to = texts.copy(TEXTS.pages, out, at);
    const first = to;
    const { presence } = choices;
    let chances = 0;
    for (let type = 0; type < TYPES; type += 1) {
      if ((type & 3) === 0) chances = stream.bits();
      const hit = (chances & 255) < presence[profile * TYPES + type]!;
      chances >>>= 8;
      if (!hit) continue;
      if (to > first) out[to++] = COMMA;
      to = this.#writePage(type, prefix, ending, local, out, to);
    }
    return texts.copy(TEXTS.endPages, out, to);
  }

  #writePage(type: number, prefix: number, ending: number, local: number, out: Uint8Array, at: number): number {
    const stream = this.#stream;
    const shape = choices.typePages[type]!;
    const bits = stream.bits() >>> 0;
    if (stream.fraction() < FIELDS.odd_urls) return this.#writeOddPage(type, prefix, out, at);
    if (bits < shape.hostShare * CHANCE) {
      let to = shape.hosts.copy(shape.hostWheel.table[stream.bits() & 255]!, out, at);
      to = this.#copyDomain(out, to);
      out[to++] = SLASH;
      out[to++] = QUOTE;
      return to;
    }
    let to = choices.openings.copy(type * choices.SITE_PREFIXES.length + prefix, out, at);
    to = this.#copyDomain(out, to);
    if (local >= 0) to = choices.locales.copy(local, out, to);
    const path = shape.pathWheel.table[bits & 255]!;
    return shape.paths.copy(path * choices.endings.length + ending, out, to);
  }

  /** Writes a URL of an uncommon form: an article number, an opaque identifier, words, a query, a separate host. */
  #writeOddPage(type: number, prefix: number, out: Uint8Array, at: number): number {
    const stream = this.#stream;
    const kind = stream.bits() & 7;
    let to = choices.openings.copy(
      type * choices.SITE_PREFIXES.length + (kind < 3 ? choices.HTTPS_APEX : prefix),
      out,
      at,
    );
    if (kind < 3) {
      to = this.#writeWord(out, to);
      out[to++] = DOT;
    }
    to = this.#copyDomain(out, to);
    if (kind === 0) {
      to = texts.copy(TEXTS.article, out, to);
      to = writeNumber(115_000_000_000 + stream.below(900_000_000) * 13, out, to);
      for (let words = stream.below(5); words > 0; words -= 1) to = this.#writeJoined(0x2d, out, to);
    } else if (kind < 5) {
      for (let words = 1 + stream.below(3); words > 0; words -= 1) to = this.#writeJoined(SLASH, out, to);
    } else if (kind === 5) {
      to = this.#writeJoined(SLASH, out, to);
      out[to++] = SLASH;
      for (let letters = 6 + stream.below(14); letters > 0; letters -= 1) out[to++] = BASE36[stream.below(36)]!;
    } else if (kind === 6) {
      to = this.#writeJoined(SLASH, out, to);
      to = texts.copy(TEXTS.query, out, to);
      to = writeNumber(stream.below(100_000), out, to);
      if (stream.bits() < 0) to = texts.copy(TEXTS.lang, out, to);
    } else {
      to = texts.copy(stream.bits() < 0 ? TEXTS.index : TEXTS.fragment, out, to);
      to = this.#writeWord(out, to);
    }
    out[to++] = QUOTE;
    return to;
  }

  #writeWord(out: Uint8Array, at: number): number {
    return choices.words.copy(this.#stream.below(choices.wordCount), out, at);
  }

  #writeJoined(joint: number, out: Uint8Array, at: number): number {
    out[at] = joint;
    return this.#writeWord(out, at + 1);
  }

  #copyDomain(out: Uint8Array, at: number): number {
    const end = this.#domainEnd;
    let to = at;
    for (let from = this.#domainAt; from < end; from += 1) out[to++] = out[from]!;
    return to;
  }

  #writeFacts(i: number, out: Uint8Array, at: number): number {
    const stream = this.#stream;
    let to = at;
    const iab = choices.iabWheel.table[stream.bits() & (choices.iabWheel.size - 1)]!;
    if (stream.fraction() < FIELDS.iab_category) to = choices.iabFields.copy(iab, out, to);
    if (stream.fraction() < FIELDS.filtering_categories) {
      to = texts.copy(TEXTS.filtering, out, to);
      const first = choices.filteringOfIab[iab]!;
      to = choices.filteringFields.copy(first, out, to);
      const second = choices.filteringWheel.table[stream.bits() & (choices.filteringWheel.size - 1)]!;
      if (second !== first && stream.fraction() < FIELDS.second_filtering_category) {
        out[to++] = COMMA;
        to = choices.filteringFields.copy(second, out, to);
      }
      to = texts.copy(TEXTS.endFiltering, out, to);
    }
    const rank = (i * this.#rankStride) % this.records;
    const ranked = rank < this.#ranked;
    if (stream.fraction() < FIELDS.open_page_rank) {
      to = texts.copy(TEXTS.openPageRank, out, to);
      to = writeHundredths(openPageRank(stream, ranked ? rank / this.records : 1), out, to);
    }
    if (ranked) {
      to = texts.copy(TEXTS.globalRank, out, to);
      to = writeNumber(rank + 1, out, to);
    }
    return texts.copy(TEXTS.end, out, to);
  }
}

/** Returns a page rank in hundredths, 0 to 1000. Better ranks tend to higher values. `place` is from 0 (the first rank) to 1. */
function openPageRank(stream: Stream, place: number): number {
  const noise = (stream.fraction() + stream.fraction() + stream.fraction()) / 3;
  const value = 150 + 280 * noise + 260 * (1 - place) ** 4;
  return Math.min(1000, Math.floor(value));
}

/** Writes hundredths as the shortest decimal: 4, 4.2, 4.25. */
function writeHundredths(value: number, out: Uint8Array, at: number): number {
  const whole = Math.floor(value / 100);
  let to = writeNumber(whole, out, at);
  const tenths = Math.floor((value - whole * 100) / 10);
  const hundredths = value % 10;
  if (tenths === 0 && hundredths === 0) return to;
  out[to++] = DOT;
  out[to++] = 0x30 + tenths;
  if (hundredths !== 0) out[to++] = 0x30 + hundredths;
  return to;
}

function rankStride(records: number): number {
  const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
  let stride = 6_700_417 % records || 1;
  while (gcd(stride, records) !== 1) stride += 1;
  return stride;
}
