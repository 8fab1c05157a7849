/**
 * What path, query and host say in the policy's own words: which token lists they touch, and where. One scratch table is filled and
 * cleared for every evaluation, so that nothing is allocated for a URL that touches no list.
 */
import { type CanonicalUrl, decodeOnce } from '../domain/canonical-url.ts';
import { isPublicSuffix } from '../domain/public-suffix.ts';
import type { TokenIndex } from './tokens.ts';

/** Where in the path a list was touched. Bits of {@link Facts.bits}. */
export const SEEN = {
  any: 1,
  last: 2,
  first: 4,
  /** The same three, for segments that no reading segment comes before. */
  unread_any: 8,
  unread_last: 16,
  unread_first: 32,
  /** The host's first label. */
  host: 64,
} as const;

const MAX_EXTENSION_LENGTH = 10;

/** Files that pages are made of, and documents: `login.css` and `account.pdf` are not the pages that their names speak of. */
const STATIC_EXTENSIONS: ReadonlySet<string> = new Set(
  (
    'css js mjs map png jpg jpeg gif svg webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 webm ogg wav txt md pdf rtf ' +
    'doc docx odt xls xlsx ods ppt pptx csv tsv xml rss atom xsd wasm'
  ).split(' '),
);

export interface ReadingLists {
  /** Segments below which everything is reading matter. */
  readonly segment: number;
  /** Segments that stand for their folder. */
  readonly index: number;
}

/** Whether what follows a host's first label is a public suffix; remembered, because hosts come back. */
class SuffixMemo {
  private readonly known = new Map<string, boolean>();
  private static readonly maxSize = 4096;

  isSuffix(host: string): boolean {
    let answer = this.known.get(host);
    if (answer === undefined) {
      if (this.known.size >= SuffixMemo.maxSize) this.known.clear();
      answer = isPublicSuffix(host, { private: true });
      this.known.set(host, answer);
    }
    return answer;
  }
}

export class Facts {
  /** For each token list, bits of {@link SEEN}. */
  readonly bits: Uint8Array;
  /** Whether a reading segment, or a host for reading, was seen. */
  reading = false;
  /** Whether a list was touched that a condition asks for. */
  isRelevant = false;
  /** Where the last segment of the path begins and ends. */
  lastStart = 0;
  lastEnd = 0;
  private readonly relevant: Uint8Array;
  private readonly suffixes = new SuffixMemo();
  private readonly touched: number[] = [];
  private readonly tokens: TokenIndex;
  private readonly lists: ReadingLists;
  // What the last and the last but one segment touched; `last` is known only at the end.
  private tail: readonly number[] = [];
  private beforeTail: readonly number[] = [];
  private tailUnread = false;
  private beforeTailUnread = false;

  /** `relevant` says for each token list whether a condition asks for it. */
  constructor(tokens: TokenIndex, lists: ReadingLists, relevant: Uint8Array) {
    this.relevant = relevant;
    this.tokens = tokens;
    this.lists = lists;
    this.bits = new Uint8Array(tokens.names.length);
  }

  clear(): void {
    for (const list of this.touched) this.bits[list] = 0;
    this.touched.length = 0;
    this.reading = false;
    this.isRelevant = false;
    this.lastStart = 0;
    this.lastEnd = 0;
  }

  private mark(list: number, bits: number): void {
    if (this.bits[list] === 0) this.touched.push(list);
    this.bits[list]! |= bits;
    if (this.relevant[list] === 1) this.isRelevant = true;
  }

  private markAll(lists: readonly number[], bits: number): void {
    for (const list of lists) this.mark(list, bits);
  }

  /** Reads the host's first label, where it stands below the registrable domain. */
  readHost(host: string): void {
    const dot = host.indexOf('.');
    if (dot < 0 || host.indexOf('.', dot + 1) < 0) return;
    const lists = this.tokens.find(host, 0, dot);
    if (lists.length === 0 || this.suffixes.isSuffix(host.slice(dot + 1))) return;
    this.markAll(lists, SEEN.host);
    if (lists.includes(this.lists.segment)) this.reading = true;
  }

  /** Forgets what was touched, but not whether it was reading matter. */
  keepReading(): void {
    const { reading } = this;
    this.clear();
    this.reading = reading;
  }

  /** Reads a path, or a fragment that is a route of the page's own. */
  readPath(path: string): void {
    this.tail = [];
    this.beforeTail = [];
    let isFirst = true;
    for (let start = 0; start < path.length; ) {
      let end = path.indexOf('/', start);
      if (end < 0) end = path.length;
      const stop = nameEnd(path, start, end);
      if (stop > start) {
        this.readSegment(path, start, stop, isFirst);
        this.lastStart = start;
        this.lastEnd = end;
        isFirst = false;
      }
      start = end + 1;
    }
    this.markLast(this.tail, this.tailUnread);
    if (this.tail.includes(this.lists.index)) this.markLast(this.beforeTail, this.beforeTailUnread);
  }

  private readSegment(path: string, start: number, end: number, isFirst: boolean): void {
    const lists = this.tokens.find(path, start, end);
    this.beforeTail = this.tail;
    this.beforeTailUnread = this.tailUnread;
    this.tail = lists;
    this.tailUnread = !this.reading;
    if (lists.length === 0) return;
    let bits = isFirst ? SEEN.any | SEEN.first : SEEN.any;
    if (!this.reading) bits |= bits << 3;
    this.markAll(lists, bits);
    if (lists.includes(this.lists.segment)) this.reading = true;
  }

  private markLast(lists: readonly number[], unread: boolean): void {
    this.markAll(lists, unread ? SEEN.last | SEEN.unread_last : SEEN.last);
  }
}

/**
 * Where a segment's name ends: before its parameters (`;…`) and its extension, unless that makes it a file of another kind. At
 * `start` where it is nothing but parameters.
 */
export function nameEnd(path: string, start: number, end: number): number {
  let stop = end;
  let dot = -1;
  for (let at = start; at < end; at++) {
    const code = path.charCodeAt(at);
    if (code === 0x3b) {
      stop = at;
      break;
    }
    if (code === 0x2e) dot = at;
  }
  if (dot <= start || stop - dot > MAX_EXTENSION_LENGTH) return stop;
  return STATIC_EXTENSIONS.has(path.slice(dot + 1, stop).toLowerCase()) ? stop : dot;
}

/** The fragment as a path, where it is a route that a page's own code follows; otherwise undefined. */
export function fragmentRoute(url: CanonicalUrl): string | undefined {
  const { fragment } = url;
  if (fragment === '') return undefined;
  if (!fragment.startsWith('/') && !fragment.startsWith('!/')) return undefined;
  const query = fragment.indexOf('?');
  return decodeOnce(fragment.slice(fragment.indexOf('/'), query < 0 ? fragment.length : query));
}

interface Parameters {
  readonly query: string;
  readonly names: readonly string[];
  readonly values: readonly string[];
}

// Several rules read the same query one after the other; it is taken apart once.
let latest: Parameters = { query: '', names: [], values: [] };

function parametersOf(query: string): Parameters {
  if (latest.query === query) return latest;
  const names: string[] = [];
  const values: string[] = [];
  for (let start = 0; start < query.length; ) {
    let end = query.indexOf('&', start);
    if (end < 0) end = query.length;
    if (end > start) {
      const equals = query.indexOf('=', start);
      const split = equals < 0 || equals > end ? end : equals;
      names.push(decodeForm(query.slice(start, split)));
      values.push(split < end ? decodeForm(query.slice(split + 1, end)) : '');
      addPieces(query.slice(start, end), names, values);
    }
    start = end + 1;
  }
  latest = { query, names, values };
  return latest;
}

/** Some servers part parameters at `;` as well: what stands between those counts, too, beside the whole. */
function addPieces(parameter: string, names: string[], values: string[]): void {
  if (!parameter.includes(';')) return;
  for (const piece of parameter.split(';')) {
    const equals = piece.indexOf('=');
    names.push(decodeForm(equals < 0 ? piece : piece.slice(0, equals)));
    values.push(equals < 0 ? '' : decodeForm(piece.slice(equals + 1)));
  }
}

/** Calls back for every parameter of a query, name and value decoded once; where one holds `;`, for the pieces between, too. */
export function eachParameter(query: string, visit: (name: string, value: string) => void): void {
  const { names, values } = parametersOf(query);
  for (let at = 0; at < names.length; at++) visit(names[at]!, values[at]!);
}

/** Decodes a form field: `+` is a space, percent escapes are UTF-8. */
export function decodeForm(text: string): string {
  return decodeOnce(text.includes('+') ? text.replaceAll('+', ' ') : text);
}
