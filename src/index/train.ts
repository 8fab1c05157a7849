/**
 * A sample of records → the dictionary. Counts origins, shapes and sets in a bounded amount of memory; the same sample in the same
 * order gives the same dictionary.
 */
import { languages } from '../record/languages.ts';
import type { Catalog } from './catalog.ts';
import { type Dictionary, MAX_SHAPES, type Shape } from './dictionary.ts';
import { INHERITED_ORIGIN, MAX_ORDINAL, MAX_ORIGINS, RECORD_ORIGINS, SET_CODE } from './layout.ts';
import { OFF_DOMAIN, type RecordFields } from './record-fields.ts';
import { isPlain, trainSymbols } from './symbols.ts';

const DOMAIN_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789-._';
/** An origin, shape or set that the sample has fewer times than this is not worth its place in the dictionary. */
const MIN_COUNT = 3;
/** Distinct texts that are counted in all; what comes later is only counted if it is known already. */
const MAX_COUNTED = 250_000;
const MAX_TEXT_SAMPLE_BYTES = 192 * 1024;
/** Longer paths tell one page, not a habit. */
const MAX_SHAPE_SIZE_BYTES = 128;
const MAX_SHAPES_SIZE_BYTES = 2 * 1024 * 1024;
/** What every dictionary has, whatever the sample is like. */
const DEFAULT_ORIGINS = ['https://', 'https://www.', 'http://', 'http://www.'];

interface Parts {
  readonly type: number;
  readonly origin: string;
  readonly path: string;
}

export class DictionaryTrainer {
  readonly #catalog: Catalog;
  readonly #budget: Budget = { left: MAX_COUNTED };
  readonly #origins = new Counter(this.#budget);
  /** For each page type: paths under the record's own origin, and `origin TAB path` under others. */
  readonly #inherited: readonly Counter[];
  readonly #others: readonly Counter[];
  readonly #sets = new Counter(this.#budget);
  readonly #iab: Uint32Array;
  readonly #domains: Uint8Array[] = [];
  #domainBytes = 0;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
    this.#inherited = catalog.vocabulary.pageTypes.map(() => new Counter(this.#budget));
    this.#others = catalog.vocabulary.pageTypes.map(() => new Counter(this.#budget));
    this.#iab = new Uint32Array(catalog.iab.names.length);
  }

  add(fields: RecordFields): void {
    if (this.#domainBytes < MAX_TEXT_SAMPLE_BYTES) {
      const domain = fields.source.slice(fields.domainStart, fields.domainEnd);
      this.#domains.push(domain);
      this.#domainBytes += domain.length;
    }
    if (fields.iabCategory >= 0) this.#iab[fields.iabCategory] = (this.#iab[fields.iabCategory] ?? 0) + 1;
    if (fields.filteringCount > 0)
      this.#sets.add(String.fromCharCode(...fields.filtering.subarray(0, fields.filteringCount)));
    const pages = partsOf(fields);
    const own = commonest(pages);
    for (const { type, origin, path } of pages) {
      this.#origins.add(origin);
      if (origin === own) this.#inherited[type]!.add(path);
      else this.#others[type]!.add(`${origin}\t${path}`);
    }
  }

  train(): Dictionary {
    const origins = this.#trainOrigins();
    const shapes = this.#trainShapes(origins);
    return {
      domainSymbols: trainSymbols(this.#domains, DOMAIN_ALPHABET),
      textSymbols: trainSymbols(this.#literals(origins, shapes)),
      origins,
      shapes,
      languages,
      iabOrder: [...this.#iab.keys()].sort((a, b) => this.#iab[b]! - this.#iab[a]! || a - b),
      filteringSets: this.#sets
        .ranked(MIN_COUNT)
        .slice(0, MAX_ORDINAL - SET_CODE.firstTable)
        .map(([set]) => Array.from(set, (character) => character.charCodeAt(0))),
    };
  }

  #trainOrigins(): string[] {
    const ranked = this.#origins.ranked(MIN_COUNT).map(([origin]) => origin);
    const own = [...new Set([...ranked.slice(0, RECORD_ORIGINS - DEFAULT_ORIGINS.length), ...DEFAULT_ORIGINS])];
    return [...new Set([...own, ...ranked])].slice(0, MAX_ORIGINS);
  }

  #trainShapes(origins: readonly string[]): Shape[][] {
    const ids = new Map(origins.map((origin, i) => [origin, i]));
    const ranked = this.#inherited.flatMap((inherited, type) => {
      const shapes: { type: number; count: number; shape: Shape }[] = [];
      for (const [path, count] of inherited.ranked(MIN_COUNT)) {
        shapes.push({ type, count, shape: { origin: INHERITED_ORIGIN, path } });
      }
      for (const [text, count] of this.#others[type]!.ranked(MIN_COUNT)) {
        const [prefix = '', path = ''] = text.split('\t');
        const origin = ids.get(prefix);
        if (origin !== undefined) shapes.push({ type, count, shape: { origin, path } });
      }
      return shapes.filter(({ shape }) => shape.path.length <= MAX_SHAPE_SIZE_BYTES && isPlainText(shape.path));
    });
    // Stable: within a count the order is that of the types and texts.
    ranked.sort((a, b) => b.count - a.count);
    const shapes: Shape[][] = this.#catalog.vocabulary.pageTypes.map(() => []);
    let size = 0;
    for (const { type, shape } of ranked) {
      size += shape.path.length + 4;
      if (size > MAX_SHAPES_SIZE_BYTES) break;
      if (shapes[type]!.length < MAX_SHAPES) shapes[type]!.push(shape);
    }
    return shapes;
  }

  /** What has to be spelled out in spite of the shapes: the text that the symbols are for. */
  #literals(origins: readonly string[], shapes: readonly (readonly Shape[])[]): Uint8Array[] {
    const known = new Set(origins);
    const texts: Uint8Array[] = [];
    let size = 0;
    const add = (text: string): void => {
      if (text === '') return;
      texts.push(Buffer.from(text, 'latin1'));
      size += text.length;
    };
    for (const [type, inherited] of this.#inherited.entries()) {
      const share = (MAX_TEXT_SAMPLE_BYTES * (type + 1)) / this.#inherited.length;
      const paths = new Set(shapes[type]!.filter(({ origin }) => origin === INHERITED_ORIGIN).map(({ path }) => path));
      for (const text of this.#others[type]!.keys()) {
        if (size >= share) break;
        const [prefix = '', path = ''] = text.split('\t');
        if (!known.has(prefix)) add(prefix);
        if (!paths.has(path)) add(path);
      }
      for (const path of inherited.keys()) {
        if (size >= share) break;
        if (!paths.has(path)) add(path);
      }
    }
    return texts;
  }
}

/** How many more distinct texts may be kept; shared by counters, so that their memory has one bound. */
interface Budget {
  left: number;
}

/** Counts texts, as long as the budget lasts. */
class Counter {
  readonly #budget: Budget;
  readonly #counts = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  add(text: string): void {
    const count = this.#counts.get(text);
    if (count === undefined) {
      if (this.#budget.left === 0) return;
      this.#budget.left -= 1;
    }
    this.#counts.set(text, (count ?? 0) + 1);
  }

  keys(): Iterable<string> {
    return this.#counts.keys();
  }

  /** The texts with at least `minCount`, the most frequent first, and of equals the smaller one. */
  ranked(minCount: number): [string, number][] {
    return [...this.#counts]
      .filter(([, count]) => count >= minCount)
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }
}

function partsOf(fields: RecordFields): Parts[] {
  const { source, domainStart, domainEnd, originStarts, originSizes } = fields;
  const origins: (string | undefined)[] = [];
  for (let i = 0; i < fields.originCount; i++) {
    const size = originSizes[i]!;
    const origin = size > 64 ? '' : textOf(source, originStarts[i]!, originStarts[i]! + size);
    origins.push(size <= 64 && isPlainText(origin) ? origin : undefined);
  }
  const parts: Parts[] = [];
  for (let i = 0; i < fields.pageCount; i++) {
    const number = fields.pageOrigins[i]!;
    const origin = number === OFF_DOMAIN ? undefined : origins[number];
    if (origin === undefined) continue;
    const path = fields.pageStarts[i]! + originSizes[number]! + domainEnd - domainStart;
    parts.push({ type: fields.pageTypes[i]!, origin, path: textOf(source, path, fields.pageEnds[i]!) });
  }
  return parts;
}

function commonest(pages: readonly Parts[]): string {
  const counts = new Counter({ left: pages.length });
  for (const { origin } of pages) counts.add(origin);
  return counts.ranked(1)[0]?.[0] ?? '';
}

function textOf(source: Uint8Array, start: number, end: number): string {
  return Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString('latin1', start, end);
}

function isPlainText(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isPlain(text.charCodeAt(i))) return false;
  return true;
}
