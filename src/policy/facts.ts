/**
 * What path, query and host say in the policy's own words: which token lists they touch, and where. One scratch table is filled and
 * cleared for every evaluation, so that nothing is allocated for a URL that touches no list.
 */
import { type CanonicalUrl, decodeOnce } from '../domain/canonical-url.ts';
import { isPublicSuffix } from '../domain/public-suffix.ts';
import { beginsQuery, hasTail, isCutMark, nameEnd, wholeNameEnd } from './segments.ts';
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
  /** The first three once more, for segments that no documentation comes before. */
  undocumented_any: 128,
  undocumented_last: 256,
  undocumented_first: 512,
  /** A title, or a file of a source tree: none of the others is said of it. */
  quoted: 1024,
  /** For segments that no shelf of topics comes before, the first of them all once more. */
  untopical_any: 2048,
  /** Right before the last segment, where that is a number or a key. */
  before_id: 4096,
  unread_before_id: 8192,
  undocumented_before_id: 16384,
} as const;

const NO_LISTS: readonly number[] = Object.freeze([]);

/** Extensions behind the name of a method. */
const ACTION_EXTENSIONS: ReadonlySet<string> = new Set(['.action', '.do']);

export interface ReadingLists {
  /** Segments below which everything is reading matter. */
  readonly segment: number;
  /** Those of them that are also a part of a site where things are done; the others are documentation. */
  readonly workingPlace: number;
  /** Segments before a title. */
  readonly titleOpener: number;
  /** Segments below which a word names a topic, the words for a login too. */
  readonly topicPlace: number;
  /** Query parameters that hold a title. */
  readonly titleName: number;
  /** Query parameters that hold the path of a page where they stand on a front page, and are a search elsewhere. */
  readonly pathName: number;
  /** Query parameters that name a controller, on a front page. */
  readonly controllerName: number;
  /** Segments before a branch and its files. */
  readonly sourceTree: number;
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
  readonly bits: Uint16Array;
  /** Whether a reading segment, or a host for reading, was seen. */
  reading = false;
  /** Whether one was seen that is documentation and nothing else. */
  private documentation = false;
  /** Whether a list was touched that a condition asks for. */
  isRelevant = false;
  /** Where the last segment of the path begins and ends. */
  lastStart = 0;
  lastEnd = 0;
  private readonly relevant: Uint8Array;
  private readonly suffixes = new SuffixMemo();
  private readonly touched: number[] = [];
  private touchedCount = 0;
  private readonly tokens: TokenIndex;
  private readonly lists: ReadingLists;
  // What the last and the last but one segment touched; `last` is known only at the end.
  private tail: readonly number[] = [];
  private beforeTail: readonly number[] = [];
  private tailLast = 0;
  private beforeTailLast = 0;
  /** Segments from this one on are quoted; the one before is the branch. */
  private quotedFrom = 0;
  private isTitleNext = false;
  private isTopic = false;

  /** `relevant` says for each token list whether a condition asks for it. */
  constructor(tokens: TokenIndex, lists: ReadingLists, relevant: Uint8Array) {
    this.relevant = relevant;
    this.tokens = tokens;
    this.lists = lists;
    this.bits = new Uint16Array(tokens.names.length);
  }

  clear(): void {
    for (let at = 0; at < this.touchedCount; at++) this.bits[this.touched[at]!] = 0;
    this.touchedCount = 0;
    this.reading = false;
    this.documentation = false;
    this.isRelevant = false;
    this.lastStart = 0;
    this.lastEnd = 0;
  }

  private mark(list: number, bits: number): void {
    if (this.bits[list] === 0) this.touched[this.touchedCount++] = list;
    this.bits[list]! |= bits;
    if (this.relevant[list] === 1) this.isRelevant = true;
  }

  private markAll(lists: readonly number[], bits: number): void {
    for (const list of lists) this.mark(list, bits);
  }

  /** Whether a condition asks for one of the lists. */
  private areRelevant(lists: readonly number[]): boolean {
    for (let at = 0; at < lists.length; at++) if (this.relevant[lists[at]!] === 1) return true;
    return false;
  }

  /** Reads the host's first label, where it stands below the registrable domain. */
  readHost(host: string): void {
    const dot = host.indexOf('.');
    if (dot < 0 || host.indexOf('.', dot + 1) < 0) return;
    const lists = this.tokens.find(host, 0, dot);
    if (lists.length === 0 || this.suffixes.isSuffix(host.slice(dot + 1))) return;
    this.markAll(lists, SEEN.host);
    this.noteReading(lists);
  }

  /** Forgets what was touched, but not whether it was reading matter. */
  keepReading(): void {
    const { reading, documentation } = this;
    this.clear();
    this.reading = reading;
    this.documentation = documentation;
  }

  /** Reads a path that only some servers see: what it says of reading matter holds for itself alone. */
  readPathApart(path: string): void {
    const { reading, documentation } = this;
    this.readPath(path);
    this.reading = reading;
    this.documentation = documentation;
  }

  /** Reads a path, or a fragment that is a route of the page's own. */
  readPath(path: string): void {
    this.tail = [];
    this.beforeTail = [];
    this.isTitleNext = false;
    this.isTopic = false;
    this.quotedFrom = Number.POSITIVE_INFINITY;
    let position = 0;
    for (let start = 0; start < path.length; ) {
      let end = path.indexOf('/', start);
      if (end < 0) end = path.length;
      const stop = nameEnd(path, start, end);
      if (stop > start) {
        this.readSegment(path, start, stop, end, position);
        this.lastStart = start;
        this.lastEnd = end;
        position++;
      }
      start = end + 1;
    }
    this.markAll(this.tail, this.tailLast);
    if (this.tail.includes(this.lists.index)) this.markAll(this.beforeTail, this.beforeTailLast);
    if (this.areRelevant(this.beforeTail) && isIdentifier(path, this.lastStart, this.lastEnd)) {
      this.markAll(this.beforeTail, beforeId(this.beforeTailLast));
    }
  }

  /** Reads the segment from `start` to `end`, whose name ends at `stop`. */
  private readSegment(path: string, start: number, stop: number, end: number, position: number): void {
    const isCut = stop < end && isCutMark(path.charCodeAt(stop));
    // Many servers know only the whole name, so it alone can excuse what is below.
    const wholeEnd = isCut ? wholeNameEnd(path, stop, end) : stop;
    const isHandle = path.charCodeAt(start) === 0x40;
    const whole = isHandle ? NO_LISTS : this.tokens.find(path, start, wholeEnd);
    const lists = isCut && !isHandle ? this.listsOfCut(path, start, stop, wholeEnd, end) : whole;
    const isTitled = this.isTitleNext && wholeEnd === end && isTitle(path, start, end, stop);
    const isQuoted = position >= this.quotedFrom || isTitled;
    this.isTitleNext = false;
    this.beforeTail = this.tail;
    this.beforeTailLast = this.tailLast;
    this.tail = lists;
    this.tailLast = isQuoted ? SEEN.quoted : this.withoutReading(SEEN.last);
    if (lists.length === 0) return;
    if (isQuoted) {
      this.markAll(lists, SEEN.quoted);
      return;
    }
    const seen = this.withoutReading(position === 0 ? SEEN.any | SEEN.first : SEEN.any);
    this.markAll(lists, this.isTopic ? seen : seen | SEEN.untopical_any);
    if (!isCut && hasTail(path, stop, end)) return;
    this.noteReading(whole);
    this.isTitleNext = whole.includes(this.lists.titleOpener);
    this.isTopic ||= whole.includes(this.lists.topicPlace);
    // A repository has an owner and a name.
    if (position >= 2 && whole.includes(this.lists.sourceTree)) this.quotedFrom = position + 2;
  }

  /** Lists of a name that a sign cuts: of the part before, of the whole, and of a method of an action (`x!login.action`). */
  private listsOfCut(path: string, start: number, stop: number, wholeEnd: number, end: number): readonly number[] {
    const part = this.tokens.find(path, start, stop);
    const whole = this.tokens.find(path, start, wholeEnd);
    const isMethod = path.charCodeAt(stop) === 0x21 && ACTION_EXTENSIONS.has(path.slice(wholeEnd, end));
    const method = isMethod ? this.tokens.find(path, stop + 1, wholeEnd) : [];
    return [...new Set([...part, ...whole, ...method])];
  }

  /** Bits of any, last and first, and the same for what has not been seen so far. */
  private withoutReading(bits: number): number {
    if (this.documentation) return bits;
    return this.reading ? bits | (bits << 7) : bits | (bits << 3) | (bits << 7);
  }

  private noteReading(lists: readonly number[]): void {
    if (!lists.includes(this.lists.segment)) return;
    this.reading = true;
    if (!lists.includes(this.lists.workingPlace)) this.documentation = true;
  }
}

/** What {@link SEEN} has of a segment that would end the path, for one that stands before a number or a key. */
function beforeId(last: number): number {
  let bits = (last & SEEN.last) === 0 ? 0 : SEEN.before_id;
  if ((last & SEEN.unread_last) !== 0) bits |= SEEN.unread_before_id;
  return (last & SEEN.undocumented_last) === 0 ? bits : bits | SEEN.undocumented_before_id;
}

/** Whether a segment is a number, or a key as programs make them: digits among letters without a blank between words. */
function isIdentifier(path: string, start: number, end: number): boolean {
  const name = path.slice(start, nameEnd(path, start, end));
  if (/^[0-9]{1,20}$/.test(name)) return true;
  return /^(?:[A-Za-z0-9_=]{8,}|[0-9a-f]{4,}(?:-[0-9a-f]{4,})+)$/i.test(name) && /[0-9]/.test(name);
}

/** Whether a segment can be a title: one of a wiki's own pages (`Special:UserLogin`) has a colon, and a page with parameters has a `=` behind `stop`. */
function isTitle(path: string, start: number, end: number, stop: number): boolean {
  return !path.slice(start, end).includes(':') && !path.slice(stop, end).includes('=');
}

/** The fragment as a path, where it is a route that a page's own code follows (`#/login`, `#!login`); otherwise undefined. */
export function fragmentRoute(url: CanonicalUrl): string | undefined {
  if (url.fragment === '') return undefined;
  const text = fragmentText(url);
  if (text.startsWith('!')) return slashed(text.slice(1));
  return text.startsWith('/') ? text : undefined;
}

/** The same for a fragment that may be an anchor as well: most routers put in the slash that is missing. */
export function looseRoute(url: CanonicalUrl): string {
  return fragmentRoute(url) ?? slashed(fragmentText(url));
}

/** A fragment, decoded once, up to the query of its own. */
function fragmentText({ fragment }: CanonicalUrl): string {
  const query = fragment.indexOf('?');
  return decodeOnce(query < 0 ? fragment : fragment.slice(0, query));
}

function slashed(text: string): string {
  return text.startsWith('/') ? text : `/${text}`;
}

/** The path up to where such a server sees its end; undefined where that is the end of the path. */
export function pathBeforeQuery({ decodedPath, queryMark }: CanonicalUrl): string | undefined {
  if (queryMark < 0) return undefined;
  for (let at = queryMark; at < decodedPath.length; at++) {
    if (beginsQuery(decodedPath, at, decodedPath.length)) return decodedPath.slice(0, at);
  }
  return undefined;
}

/** The same; undefined where that leaves out nothing but a name's tail. */
export function shorterPath(url: CanonicalUrl): string | undefined {
  if (url.queryMark <= 0 || !url.decodedPath.includes('/', url.queryMark)) return undefined;
  const path = pathBeforeQuery(url);
  return path !== undefined && url.decodedPath.includes('/', path.length) ? path : undefined;
}
