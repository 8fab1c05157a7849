/**
 * Trains the dictionary with a sample of records. Counts origins, paths and sets of categories in bounded memory. The same sample in the
 * same order gives the same dictionary.
 */

import { TAB } from '../../bytes/ascii.ts';
import { ByteKey } from '../../bytes/byte-map.ts';
import { languages } from '../../record/language-codes.ts';
import type { RecordNames } from '../../record/names.ts';
import { type Dictionary, PATH_TEMPLATES_MAX, type PathTemplate } from '../format/dictionary.ts';
import {
  INHERITED_ORIGIN,
  ORDINAL_MAX,
  ORIGINS_MAX,
  PAGE_TYPES_MAX,
  RECORD_ORIGINS,
  SET_CODE,
  URL_MAX_BYTES,
} from '../format/layout.ts';
import { isPlain } from '../format/symbol-table.ts';
import { OFF_DOMAIN, type RecordFields } from './record-fields.ts';
import { trainSymbols } from './symbol-training.ts';
import { TextCounts } from './text-counts.ts';

const DOMAIN_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789-._';
/** Minimum number of occurrences in the sample for an origin, template or set to be worth its space in the dictionary. */
const COUNT_MIN = 3;
/** Maximum number of distinct texts to count, and of their bytes in total. After that, only known texts are counted. */
const COUNTED_MAX = 250_000;
const COUNTED_MAX_BYTES = 32 * 1024 * 1024;
const TEXT_SAMPLE_MAX_BYTES = 192 * 1024;
/** Longer paths are those of single pages, not common patterns. */
const TEMPLATE_MAX_BYTES = 128;
const TEMPLATES_MAX_BYTES = 2 * 1024 * 1024;
/** Origins that every dictionary has, whatever the sample contains. */
const DEFAULT_ORIGINS = ['https://', 'https://www.', 'http://', 'http://www.'];

const ORIGIN_MAX_BYTES = 64;
/** Number of an origin that has not been counted yet for this record. */
const NOT_YET_COUNTED = -2;

/** Kinds of counted texts. Each page type has two more: paths under the record's own origin, and `origin TAB path` for other origins. */
const ORIGINS = 0;
const SETS = 1;
const ownOriginPaths = (type: number): number => 2 + 2 * type;
const otherOriginPaths = (type: number): number => 3 + 2 * type;

/** Trains a dictionary: call `add` for each record of a sample, then `train`. */
export class DictionaryTrainer {
  readonly #names: RecordNames;
  readonly #texts = new TextCounts(COUNTED_MAX, COUNTED_MAX_BYTES);
  readonly #key = new ByteKey();
  /** Buffer for `origin TAB path`. */
  readonly #joined: DataView = new DataView(new ArrayBuffer(ORIGIN_MAX_BYTES + 1 + URL_MAX_BYTES));
  /** For each origin of the record: how many pages have it (-1 if it is not counted), and its number in `#texts`. */
  readonly #originPages: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly #originNumbers: Int32Array = new Int32Array(PAGE_TYPES_MAX);
  readonly #iab: Uint32Array;
  #domains: Uint8Array[] = [];
  #domainBytes = 0;
  /** One of this many domains is kept. `#untilDomain` counts down to the next one. */
  #domainStep = 1;
  #untilDomain = 1;

  /** @param names the names that the records refer to */
  constructor(names: RecordNames) {
    this.#names = names;
    this.#iab = new Uint32Array(names.iab.names.length);
  }

  /** Counts a record. The caller may reuse the memory of `fields` afterwards. */
  add(fields: RecordFields): void {
    this.#addDomain(fields);
    if (fields.iabCategory >= 0) this.#iab[fields.iabCategory] = (this.#iab[fields.iabCategory] ?? 0) + 1;
    if (fields.filteringCount > 0) {
      this.#key.take(fields.filteringView, 0, fields.filteringCount);
      this.#texts.add(SETS, this.#key);
    }
    this.#countPages(fields, this.#chooseOrigin(fields));
  }

  /** Returns the origin that most pages of a record have; on a tie the smaller one. Fills `#originPages`. */
  #chooseOrigin(fields: RecordFields): number {
    const pages = this.#originPages;
    const { source, originStarts, originSizes, originPages, originCount } = fields;
    for (let i = 0; i < originCount; i++) {
      pages[i] = isPlainOrigin(source, originStarts[i]!, originSizes[i]!) ? originPages[i]! : -1;
    }
    let best = 0;
    for (let i = 1; i < originCount; i++) {
      if (pages[i]! > pages[best]! || (pages[i] === pages[best] && isSmaller(fields, i, best))) best = i;
    }
    return best;
  }

  #countPages(fields: RecordFields, ownOrigin: number): void {
    const { view, originStarts, originSizes } = fields;
    const texts = this.#texts;
    const key = this.#key;
    const numbers = this.#originNumbers.fill(NOT_YET_COUNTED);
    for (let i = 0; i < fields.pageCount; i++) {
      const origin = fields.pageOrigins[i]!;
      if (origin === OFF_DOMAIN || this.#originPages[origin]! < 0) continue;
      const start = originStarts[origin]!;
      const size = originSizes[origin]!;
      if (numbers[origin] === NOT_YET_COUNTED) {
        key.take(view, start, start + size);
        numbers[origin] = texts.add(ORIGINS, key);
      } else texts.addAgain(numbers[origin]!);
      const type = fields.pageTypes[i]!;
      const end = fields.pageEnds[i]!;
      const path = fields.pageStarts[i]! + size + fields.domainEnd - fields.domainStart;
      if (origin === ownOrigin) {
        key.take(view, path, end);
        texts.add(ownOriginPaths(type), key);
      } else {
        key.take(this.#joined, 0, this.#join(fields.source, start, size, path, end));
        texts.add(otherOriginPaths(type), key);
      }
    }
  }

  /** Writes `origin TAB path` to `#joined` and returns its size. */
  #join(source: Uint8Array, origin: number, originSize: number, path: number, end: number): number {
    const joined = this.#joined;
    for (let i = 0; i < originSize; i++) joined.setUint8(i, source[origin + i]!);
    joined.setUint8(originSize, TAB);
    for (let i = path, to = originSize + 1; i < end; i++, to++) joined.setUint8(to, source[i]!);
    return originSize + 1 + end - path;
  }

  /**
   * Keeps every n-th domain. When they take too much space, drops half of them and doubles n. The first domains alone would not do: those of
   * a sorted drop are similar.
   */
  #addDomain({ source, domainStart, domainEnd }: RecordFields): void {
    this.#untilDomain -= 1;
    if (this.#untilDomain > 0) return;
    this.#untilDomain = this.#domainStep;
    // Must be a copy, because the memory of the line is reused. `slice` of a Buffer would not copy.
    this.#domains.push(new Uint8Array(source.subarray(domainStart, domainEnd)));
    this.#domainBytes += domainEnd - domainStart;
    if (this.#domainBytes <= TEXT_SAMPLE_MAX_BYTES) return;
    this.#domains = this.#domains.filter((_, i) => i % 2 === 0);
    this.#domainBytes = this.#domains.reduce((sum, domain) => sum + domain.length, 0);
    this.#domainStep *= 2;
  }

  /** Returns the dictionary for the records added. */
  train(): Dictionary {
    const origins = this.#trainOrigins();
    const pathTemplates = this.#trainTemplates(origins);
    return {
      domainSymbols: trainSymbols(this.#domains, DOMAIN_ALPHABET),
      textSymbols: trainSymbols(this.#literals(origins, pathTemplates)),
      origins,
      pathTemplates,
      languages,
      iabOrder: [...this.#iab.keys()].sort((a, b) => this.#iab[b]! - this.#iab[a]! || a - b),
      filteringSets: this.#texts
        .ranked(SETS, COUNT_MIN)
        .slice(0, ORDINAL_MAX - SET_CODE.firstTable)
        .map(([set]) => Array.from(set, (character) => character.charCodeAt(0))),
    };
  }

  #trainOrigins(): string[] {
    const ranked = this.#texts.ranked(ORIGINS, COUNT_MIN).map(([origin]) => origin);
    const recordOrigins = [
      ...new Set([...ranked.slice(0, RECORD_ORIGINS - DEFAULT_ORIGINS.length), ...DEFAULT_ORIGINS]),
    ];
    return [...new Set([...recordOrigins, ...ranked])].slice(0, ORIGINS_MAX);
  }

  #trainTemplates(origins: readonly string[]): PathTemplate[][] {
    const ids = new Map(origins.map((origin, i) => [origin, i]));
    const ranked = this.#names.vocabulary.pageTypes.flatMap((_, type) => {
      const pathTemplates: { type: number; count: number; template: PathTemplate }[] = [];
      for (const [path, count] of this.#texts.ranked(ownOriginPaths(type), COUNT_MIN)) {
        pathTemplates.push({ type, count, template: { origin: INHERITED_ORIGIN, path } });
      }
      for (const [text, count] of this.#texts.ranked(otherOriginPaths(type), COUNT_MIN)) {
        const [prefix = '', path = ''] = text.split('\t');
        const origin = ids.get(prefix);
        if (origin !== undefined) pathTemplates.push({ type, count, template: { origin, path } });
      }
      return pathTemplates.filter(
        ({ template }) => template.path.length <= TEMPLATE_MAX_BYTES && isPlainText(template.path),
      );
    });
    // The sort is stable: templates with the same count stay in the order of types and texts.
    ranked.sort((a, b) => b.count - a.count);
    const pathTemplates: PathTemplate[][] = this.#names.vocabulary.pageTypes.map(() => []);
    let size = 0;
    for (const { type, template } of ranked) {
      size += template.path.length + 4;
      if (size > TEMPLATES_MAX_BYTES) break;
      if (pathTemplates[type]!.length < PATH_TEMPLATES_MAX) pathTemplates[type]!.push(template);
    }
    return pathTemplates;
  }

  /** Returns the texts that records contain as literals despite the path templates. The text symbols are trained with them. */
  #literals(origins: readonly string[], pathTemplates: readonly (readonly PathTemplate[])[]): Uint8Array[] {
    const known = new Set(origins);
    const texts: Uint8Array[] = [];
    let size = 0;
    const add = (text: string): void => {
      if (text === '') return;
      texts.push(Buffer.from(text, 'latin1'));
      size += text.length;
    };
    const typeCount = this.#names.vocabulary.pageTypes.length;
    for (let type = 0; type < typeCount; type++) {
      const share = (TEXT_SAMPLE_MAX_BYTES * (type + 1)) / typeCount;
      const paths = new Set(
        pathTemplates[type]!.filter(({ origin }) => origin === INHERITED_ORIGIN).map(({ path }) => path),
      );
      for (const text of this.#texts.texts(otherOriginPaths(type))) {
        if (size >= share) break;
        const [prefix = '', path = ''] = text.split('\t');
        if (!known.has(prefix)) add(prefix);
        if (!paths.has(path)) add(path);
      }
      for (const path of this.#texts.texts(ownOriginPaths(type))) {
        if (size >= share) break;
        if (!paths.has(path)) add(path);
      }
    }
    return texts;
  }
}

function isPlainOrigin(source: Uint8Array, start: number, size: number): boolean {
  if (size > ORIGIN_MAX_BYTES) return false;
  for (let i = start; i < start + size; i++) if (!isPlain(source[i]!)) return false;
  return true;
}

/** True if origin `a` of the record precedes origin `b` in byte order. */
function isSmaller({ source, originStarts, originSizes }: RecordFields, a: number, b: number): boolean {
  const sizes = [originSizes[a]!, originSizes[b]!] as const;
  for (let i = 0; i < sizes[0] && i < sizes[1]; i++) {
    const difference = source[originStarts[a]! + i]! - source[originStarts[b]! + i]!;
    if (difference !== 0) return difference < 0;
  }
  return sizes[0] < sizes[1];
}

function isPlainText(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isPlain(text.charCodeAt(i))) return false;
  return true;
}
