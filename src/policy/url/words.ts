/**
 * What path and host say in the policy's own words: which token lists they touch, where, and in which context. One scratch table is
 * filled and cleared for every evaluation, so that nothing is allocated for a URL that touches no list.
 */
import { isPublicSuffix } from '../../domain/public-suffix.ts';
import { CONTEXT, POSITION } from './contexts.ts';
import { hasTail, isCutMark, nameEnd, wholeNameEnd } from './segments.ts';
import type { TokenIndex } from './tokens.ts';

/** Token lists whose words say what follows them. */
export interface PlaceLists {
  /** Segments below which everything is reading matter. */
  readonly reading: number;
  /** Those of them that are also a part of a site where things are done; the others are documentation. */
  readonly workingPlace: number;
  /** Segments below which a word names a topic, the words for a login too. */
  readonly topicPlace: number;
  /** Segments before a title. */
  readonly titleOpener: number;
  /** Segments before a branch and its files. */
  readonly sourceTree: number;
  /** Segments that stand for their folder. */
  readonly index: number;
}

const NO_LISTS: readonly number[] = Object.freeze([]);
const ANY = 1 << POSITION.any;
const FIRST = 1 << POSITION.first;
const LAST = 1 << POSITION.last;
const BEFORE_ID = 1 << POSITION.before_id;
/** How much further a context is that is a topic as well. */
const TOPIC = CONTEXT.topic - CONTEXT.none;
const AT_SIGN = 0x40;
const EXCLAMATION_MARK = 0x21;

/** Extensions behind the name of a method. */
const ACTION_EXTENSIONS: ReadonlySet<string> = new Set(['.action', '.do']);

/** Whether what follows a host's first label is a public suffix; remembered, because hosts come back. */
class SuffixMemo {
  static readonly #maxSize = 4096;
  readonly #known = new Map<string, boolean>();

  isSuffix(host: string): boolean {
    let answer = this.#known.get(host);
    if (answer === undefined) {
      if (this.#known.size >= SuffixMemo.#maxSize) this.#known.clear();
      answer = isPublicSuffix(host, { private: true });
      this.#known.set(host, answer);
    }
    return answer;
  }
}

export class Words {
  /** For each token list, where it was met: {@link POSITION}, shifted by {@link CONTEXT}. */
  readonly bits: Int32Array;
  /** The lists that were met, in order; those behind `touchedCount` are old. */
  readonly touched: number[] = [];
  touchedCount = 0;
  /** Token lists of the host's first label, where it stands below the registrable domain. */
  hostLists: readonly number[] = NO_LISTS;
  /** What was seen so far: none, reading matter, documentation. */
  #level: number = CONTEXT.none;
  /** Where the last segment of the path begins and ends. */
  lastStart = 0;
  lastEnd = 0;
  /** For each token list whether a condition asks for it in a path. */
  readonly #wanted: Uint8Array;
  readonly #tokens: TokenIndex;
  readonly #places: PlaceLists;
  readonly #suffixes = new SuffixMemo();
  // Of the last and the last but one segment: which is the last one is known only at the end.
  #lists: readonly number[] = NO_LISTS;
  #context = 0;
  #listsBefore: readonly number[] = NO_LISTS;
  #contextBefore = 0;
  // What a segment said of those that follow.
  #isTitleNext = false;
  #topic = 0;
  /** Segments from this one on are source files; the one before is the branch. */
  #sourceFrom = 0;

  constructor(tokens: TokenIndex, places: PlaceLists, wanted: Uint8Array) {
    this.#tokens = tokens;
    this.#places = places;
    this.#wanted = wanted;
    this.bits = new Int32Array(tokens.names.length);
  }

  /** The context of a word behind all that was read. */
  get context(): number {
    return this.#level;
  }

  clear(): void {
    this.forget();
    this.#level = CONTEXT.none;
  }

  /** Forgets what was met, but not whether it was reading matter. */
  forget(): void {
    for (let at = 0; at < this.touchedCount; at++) this.bits[this.touched[at]!] = 0;
    this.touchedCount = 0;
    this.hostLists = NO_LISTS;
    this.lastStart = 0;
    this.lastEnd = 0;
  }

  readHost(host: string): void {
    const dot = host.indexOf('.');
    if (dot < 0 || host.indexOf('.', dot + 1) < 0) return;
    const lists = this.#tokens.find(host, 0, dot);
    if (lists.length === 0 || this.#suffixes.isSuffix(host.slice(dot + 1))) return;
    this.hostLists = lists;
    this.#noteLevel(lists);
  }

  /** Reads a path that only some servers see: what it says of reading matter holds for itself alone. */
  readPathApart(path: string): void {
    const level = this.#level;
    this.readPath(path);
    this.#level = level;
  }

  /** Reads a path, or a fragment that is a route of the page's own. */
  readPath(path: string): void {
    this.#lists = NO_LISTS;
    this.#listsBefore = NO_LISTS;
    this.#isTitleNext = false;
    this.#topic = 0;
    this.#sourceFrom = Number.POSITIVE_INFINITY;
    let position = 0;
    for (let start = 0; start < path.length; ) {
      let end = path.indexOf('/', start);
      if (end < 0) end = path.length;
      const stop = nameEnd(path, start, end);
      if (stop > start) {
        this.#readSegment(path, start, stop, end, position);
        this.lastStart = start;
        this.lastEnd = end;
        position++;
      }
      start = end + 1;
    }
    this.#mark(this.#lists, LAST << this.#context);
    const before = this.#listsBefore;
    if (before.length === 0) return;
    if (this.#lists.includes(this.#places.index)) this.#mark(before, LAST << this.#contextBefore);
    if (this.#isAnyWanted(before) && isIdentifier(path, this.lastStart, this.lastEnd)) {
      this.#mark(before, BEFORE_ID << this.#contextBefore);
    }
  }

  /** Reads the segment from `start` to `end`, whose name ends at `stop`. */
  #readSegment(path: string, start: number, stop: number, end: number, position: number): void {
    const isCut = stop < end && isCutMark(path.charCodeAt(stop));
    // Many servers know only the whole name, so it alone can excuse what is below.
    const wholeEnd = isCut ? wholeNameEnd(path, stop, end) : stop;
    const isHandle = path.charCodeAt(start) === AT_SIGN;
    const whole = isHandle ? NO_LISTS : this.#tokens.find(path, start, wholeEnd);
    const isTitle = this.#isTitleNext && wholeEnd === end && canBeTitle(path, start, end, stop);
    this.#isTitleNext = false;
    this.#listsBefore = this.#lists;
    this.#contextBefore = this.#context;
    this.#lists = isCut && !isHandle ? this.#listsOfCut(path, start, stop, wholeEnd, end) : whole;
    this.#context = this.#level + this.#topic;
    if (position >= this.#sourceFrom) this.#context = CONTEXT.source;
    else if (isTitle) this.#context = CONTEXT.title;
    if (this.#lists.length === 0) return;
    this.#mark(this.#lists, (position === 0 ? ANY | FIRST : ANY) << this.#context);
    if (this.#context >= CONTEXT.title || (!isCut && hasTail(path, stop, end))) return;
    this.#notePlace(whole, position);
  }

  /** Notes what a segment says of those that follow. */
  #notePlace(lists: readonly number[], position: number): void {
    this.#noteLevel(lists);
    this.#isTitleNext = lists.includes(this.#places.titleOpener);
    if (lists.includes(this.#places.topicPlace)) this.#topic = TOPIC;
    // A repository has an owner and a name.
    if (position >= 2 && lists.includes(this.#places.sourceTree)) this.#sourceFrom = position + 2;
  }

  #noteLevel(lists: readonly number[]): void {
    if (!lists.includes(this.#places.reading)) return;
    const level = lists.includes(this.#places.workingPlace) ? CONTEXT.reading : CONTEXT.documentation;
    if (level > this.#level) this.#level = level;
  }

  /** Lists of a name that a sign cuts: of the part before, of the whole, and of a method of an action (`x!login.action`). */
  #listsOfCut(path: string, start: number, stop: number, wholeEnd: number, end: number): readonly number[] {
    const part = this.#tokens.find(path, start, stop);
    const whole = this.#tokens.find(path, start, wholeEnd);
    const isMethod = path.charCodeAt(stop) === EXCLAMATION_MARK && ACTION_EXTENSIONS.has(path.slice(wholeEnd, end));
    const method = isMethod ? this.#tokens.find(path, stop + 1, wholeEnd) : [];
    return [...new Set([...part, ...whole, ...method])];
  }

  #mark(lists: readonly number[], bits: number): void {
    for (let at = 0; at < lists.length; at++) {
      const list = lists[at]!;
      if (this.#wanted[list] === 0) continue;
      if (this.bits[list] === 0) this.touched[this.touchedCount++] = list;
      this.bits[list]! |= bits;
    }
  }

  #isAnyWanted(lists: readonly number[]): boolean {
    for (let at = 0; at < lists.length; at++) if (this.#wanted[lists[at]!] === 1) return true;
    return false;
  }
}

/** Whether a segment is a number, or a key as programs make them: digits among letters without a blank between words. */
function isIdentifier(path: string, start: number, end: number): boolean {
  const name = path.slice(start, nameEnd(path, start, end));
  if (/^[0-9]{1,20}$/.test(name)) return true;
  return /^(?:[A-Za-z0-9_=]{8,}|[0-9a-f]{4,}(?:-[0-9a-f]{4,})+)$/i.test(name) && /[0-9]/.test(name);
}

/** Not one of a wiki's own pages (`Special:UserLogin`), which has a colon, nor a page with parameters, which has a `=` behind `stop`. */
function canBeTitle(path: string, start: number, end: number, stop: number): boolean {
  return !path.slice(start, end).includes(':') && !path.slice(stop, end).includes('=');
}
