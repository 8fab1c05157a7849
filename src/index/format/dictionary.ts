/**
 * The dictionary of an index: the values that records refer to by small numbers. It is trained with a sample and stored in its own section.
 * - symbols: for domains, and for the text of URLs (symbol-table.ts)
 * - origins: what precedes the domain in a URL, such as `https://` or `https://www.`
 * - pathTemplates: for each page type, pairs of an origin (or the record's own) and a path
 * - languages, and with the frequent ones first: IAB categories and sets of filtering categories
 */
import {
  INHERITED_ORIGIN,
  ORDINAL_MAX,
  ORIGINS_MAX,
  PAGE_TYPES_MAX,
  SET_CODE,
  URL_CODE,
  URL_MAX_BYTES,
} from './layout.ts';
import { decodeMap, encodeMap } from './metadata.ts';
import { isPlain, SymbolTable } from './symbol-table.ts';

/** One frequent form of a page's URL. */
export interface PathTemplate {
  /** Position in `origins`, or `INHERITED_ORIGIN` for the record's own. */
  readonly origin: number;
  /** What follows the domain: path and query; may be empty. */
  readonly path: string;
}

export interface Dictionary {
  readonly domainSymbols: SymbolTable;
  readonly textSymbols: SymbolTable;
  readonly origins: readonly string[];
  /** For each page type of the vocabulary, by code. */
  readonly pathTemplates: readonly (readonly PathTemplate[])[];
  /** ISO 639-1 codes. */
  readonly languages: readonly string[];
  /** Ordinals of the taxonomy, each of them once. */
  readonly iabOrder: readonly number[];
  /** Sets of ordinals of the filtering taxonomy, each in ascending order. */
  readonly filteringSets: readonly (readonly number[])[];
}

/** Maximum number of path templates for one page type: as many as an ordinal of one or two bytes can distinguish. */
export const PATH_TEMPLATES_MAX: number = ORDINAL_MAX + 1 - URL_CODE.firstTemplate;
const LANGUAGES_MAX = 255;

/** Encodes the dictionary as the bytes of its section. */
export function encodeDictionary(dictionary: Dictionary): Uint8Array {
  return encodeMap({
    domain_symbols: dictionary.domainSymbols.symbols,
    text_symbols: dictionary.textSymbols.symbols,
    origins: dictionary.origins,
    path_templates: dictionary.pathTemplates.map((templates) => templates.map(({ origin, path }) => [origin, path])),
    languages: dictionary.languages,
    iab_order: dictionary.iabOrder,
    filtering_sets: dictionary.filteringSets,
  });
}

/**
 * Decodes the section and checks every size and every number.
 *
 * @throws RangeError if the section is invalid; the message is the reason
 */
export function decodeDictionary(bytes: Uint8Array): Dictionary {
  const map = decodeMap(bytes);
  const dictionary: Dictionary = {
    domainSymbols: new SymbolTable(list(map['domain_symbols'], 'domain_symbols', 254).map(symbol)),
    textSymbols: new SymbolTable(list(map['text_symbols'], 'text_symbols', 254).map(symbol)),
    origins: list(map['origins'], 'origins', ORIGINS_MAX).map((text) => plainText(text, 'origin', 300)),
    pathTemplates: list(map['path_templates'], 'path_templates', PAGE_TYPES_MAX).map((templates) =>
      list(templates, 'path_templates', PATH_TEMPLATES_MAX).map(template),
    ),
    languages: list(map['languages'], 'languages', LANGUAGES_MAX).map((text) => {
      if (typeof text !== 'string' || !/^[a-z]{2}$/.test(text)) throw new RangeError('a language is not two letters');
      return text;
    }),
    iabOrder: list(map['iab_order'], 'iab_order', ORDINAL_MAX).map((n) => integer(n, 0xffff)),
    filteringSets: list(map['filtering_sets'], 'filtering_sets', ORDINAL_MAX - SET_CODE.firstTable).map((set) =>
      ascending(list(set, 'filtering set', 255).map((n) => integer(n, 255))),
    ),
  };
  for (const { origin } of dictionary.pathTemplates.flat()) {
    if (origin !== INHERITED_ORIGIN && origin >= dictionary.origins.length)
      throw new RangeError('a template has no origin');
  }
  if (dictionary.origins.length === 0) throw new RangeError('there are no origins');
  return dictionary;
}

function template(value: unknown): PathTemplate {
  // No iterator, because thousands of templates are decoded each time an index is opened.
  const pair = list(value, 'template', 2);
  return { origin: integer(pair[0], INHERITED_ORIGIN), path: plainText(pair[1], 'path', URL_MAX_BYTES) };
}

function symbol(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new RangeError('a symbol is not bytes');
  return value;
}

function list(value: unknown, name: string, maxCount: number): readonly unknown[] {
  if (!Array.isArray(value)) throw new RangeError(`${name} is not a list`);
  if (value.length > maxCount)
    throw new RangeError(`${name} has ${value.length} items, at most ${maxCount} are possible`);
  return value;
}

function integer(value: unknown, max: number): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > max) {
    throw new RangeError(`${String(value)} is not a whole number up to ${max}`);
  }
  return value as number;
}

function ascending(numbers: readonly number[]): readonly number[] {
  if (numbers.some((n, i) => i > 0 && n <= numbers[i - 1]!)) throw new RangeError('a filtering set is not ascending');
  return numbers;
}

function plainText(value: unknown, name: string, maxSizeBytes: number): string {
  if (typeof value !== 'string' || value.length > maxSizeBytes) throw new RangeError(`a ${name} is not a short text`);
  for (let i = 0; i < value.length; i++) {
    if (!isPlain(value.charCodeAt(i))) throw new RangeError(`a ${name} has a character that is not plain`);
  }
  return value;
}
