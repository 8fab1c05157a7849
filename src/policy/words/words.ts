/** What host and path of a URL say in the policy's own words: which token lists they touch, where, and in which context. */

import { DOT } from '../../bytes/ascii.ts';
import { isKey, isKeyOrOwner, isNumberOrKey } from '../url/keys.ts';
import { afterLanguage } from '../url/languages.ts';
import { readingsOf } from '../url/path-readings.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { lastLetterEnd } from '../url/segments.ts';
import { DatedFolders, isWritten } from './dated-folders.ts';
import { HostLabels } from './host-labels.ts';
import { MetWords } from './met-words.ts';
import { contextsAt, forumContext, type HostPlaces } from './path-contents.ts';
import { PathOutline } from './path-outline.ts';
import { MEANING, PlaceWords } from './place-words.ts';
import { ProgramNames } from './program-names.ts';
import { withoutSiteName } from './site-name.ts';
import { isAnyIn, NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';
import { CONTEXT, POSITION } from './word-contexts.ts';

/** Token lists of what a site names after itself, and what a word of them means then; its products are named so, too, and stand in none. */
const OWN_NAME_LISTS = {
  login: 'login',
  signup: 'signup',
  password_reset: 'password_reset',
  account: 'account',
  own_area: 'account',
} as const;

const ANY = 1 << POSITION.any.shift;
const FIRST = 1 << POSITION.first.shift;
const LAST = 1 << POSITION.last.shift;
const BEFORE_ID = 1 << POSITION.before_id.shift;
const AFTER_ID = 1 << POSITION.after_id.shift;
const PART = 1 << POSITION.part.shift;
const ONLY = 1 << POSITION.only.shift;

/** Extensions of programs that servers run with the rest of the path. */
const PROGRAM = /^\.(?:php[3-8]?|phtml|aspx?|ashx|cgi|pl|cfm)(?![a-z0-9])/i;
const UNKNOWN = -1;
/** So many names before a key are looked at: those that name it, or say whose it is, and what stands before them. */
const NAMED_MAX = 5;

/** The words of one URL; filled by a layer, cleared before the next URL. */
export class Words {
  readonly met: MetWords;
  /** Token lists of the host's first label, where it stands below the registrable domain. */
  hostLists: readonly number[] = NO_LISTS;
  /** The context of the last segment as a file. */
  fileContext: number = CONTEXT.none;
  /** Where the last segment of the path begins and ends, and its context. */
  #lastStart = 0;
  #lastEnd = 0;
  #lastContext: number = CONTEXT.none;
  readonly #tokens: TokenIndex;
  /** For each token list whether a condition asks for it in a path. */
  readonly #wanted: Uint8Array;
  readonly #placeWords: PlaceWords;
  readonly #hostLabels: HostLabels;
  readonly #outline: PathOutline;
  readonly #dates = new DatedFolders();
  readonly #programs: ProgramNames;
  /** For lists whose words may stand beside the site's own name the list that they then mean. */
  readonly #ownNameLists: ReadonlyMap<number, number>;
  #host = '';
  /** Whether the host announces help or news, which are no manual. */
  #isHelpHost = false;
  /** For each segment of the path its context; what is behind the last one is old. */
  readonly #contexts: number[] = [];
  // What host and segments said of those that follow.
  /** The context that the places of the host give the last segment, or what stands behind it. */
  #placeContext: number = CONTEXT.none;
  /** None, reading matter, documentation. */
  #level: number = CONTEXT.none;
  #isTitleNext = false;
  #isTopic = false;
  /** Segments from this one on are source files; the one before is the branch. */
  #sourceFrom = 0;
  /** Where the path begins behind a language, once that was asked: the segment there counts as the first one, too. */
  #firstStart = UNKNOWN;

  /**
   * `acts`: for each token list whether a condition asks for it in a path; `openPages`: the list of pages for everybody, which is noted as well.
   * @throws PagegateError policy_invalid, where a list is missing
   */
  constructor(tokens: TokenIndex, acts: Uint8Array, openPages: number) {
    this.#tokens = tokens;
    this.#wanted = acts.slice();
    this.#wanted[openPages] = 1;
    this.met = new MetWords(tokens, this.#wanted);
    this.#placeWords = new PlaceWords(tokens);
    this.#hostLabels = new HostLabels(tokens, this.#placeWords);
    this.#outline = new PathOutline(tokens, this.#placeWords, acts);
    this.#programs = new ProgramNames(tokens);
    const ownNameLists = Object.entries(OWN_NAME_LISTS);
    this.#ownNameLists = new Map(ownNameLists.map(([from, to]) => [tokens.ordinal(from), tokens.ordinal(to)]));
  }

  /** The context of what would stand behind the path that was read: by its words, or by the places of the host. */
  get context(): number {
    const isTopic = this.#isTopic || this.#outline.textStart > 0 || this.#outline.hasDictionary;
    return Math.max(isTopic ? CONTEXT.topic : this.#level, this.#placeContext);
  }

  clear(): void {
    this.forget();
    this.#level = CONTEXT.none;
    this.#isTopic = false;
    this.#outline.begin('');
    this.#host = '';
    this.#isHelpHost = false;
  }

  /** Forgets what was met, but not whether it was reading matter. */
  forget(): void {
    this.met.clear();
    this.hostLists = NO_LISTS;
  }

  /** Token lists of the value of a parameter that names an act, taken apart. */
  listsOfAct(value: string): readonly number[] {
    return this.#programs.listsOfAct(value);
  }

  readHost(host: string): void {
    this.#host = host;
    const lists = this.#hostLabels.listsOf(host);
    if (lists.length === 0) return;
    this.hostLists = lists;
    const meaning = this.#placeWords.meaningOf(lists);
    this.#noteLevel((meaning & MEANING.workingHost) === 0 ? meaning : meaning | MEANING.workingPlace);
    const isManual = (meaning & (MEANING.documentationPlace | MEANING.developerHost)) !== 0;
    this.#isHelpHost = this.#level === CONTEXT.documentation && !isManual;
  }

  /** Reads a path that only some clients see: what it says of reading matter holds for itself alone. */
  readPathApart(path: string): void {
    const level = this.#level;
    this.readPath(path, undefined);
    this.#level = level;
  }

  /**
   * Reads a path, or a fragment that is a route of the page's own, in all its readings. `places` are those of the host. `behind` is called behind
   * each reading. What all of them say of reading matter holds for what is read later.
   */
  readPath(path: string, places: HostPlaces | undefined, behind?: (segments: PathSegments) => void): void {
    const readings = readingsOf(path, this.#tokens.segments(path));
    if (readings === undefined) {
      this.#readOne(path, places);
      behind?.(this.#tokens.segments(path));
      return;
    }
    const before = this.#level;
    let least: number = CONTEXT.source;
    for (const reading of readings) {
      this.#level = before;
      this.#readOne(reading, places);
      behind?.(this.#tokens.segments(reading));
      least = Math.min(least, this.#level);
    }
    this.#level = least;
  }

  #readOne(path: string, places: HostPlaces | undefined): void {
    const segments = this.#tokens.segments(path);
    const { count, allCount } = segments;
    this.#beginPath(path, count);
    const given = places === undefined ? undefined : contextsAt(places, segments, this.#wanted);
    const everywhere = places?.everywhere ?? CONTEXT.none;
    for (let at = 0; at < count; at++) this.#readSegment(segments, at, given?.[at] ?? everywhere);
    this.#placeContext = given === undefined ? everywhere : Math.max(given.at(-2) ?? 0, given.at(-1)!);
    if (count > 0) this.#readEnd(segments, count);
    if (allCount === count) return;
    // Index files are words, too: what stands for a folder is behind it.
    const { context } = this;
    for (let at = count; at < allCount; at++) {
      this.met.beginSegment();
      this.#contexts[at] = context;
      this.fileContext = context;
      this.#mark(segments, at, this.#isFirst(segments, at) ? ANY | FIRST : ANY);
      this.#readEnd(segments, at + 1);
    }
  }

  #beginPath(path: string, count: number): void {
    this.#outline.begin(path);
    this.#dates.clear();
    this.#isTitleNext = false;
    this.#isTopic = false;
    this.#sourceFrom = Number.POSITIVE_INFINITY;
    this.#firstStart = UNKNOWN;
    // A single word is a page of the site itself there, and no article.
    if (this.#isHelpHost && count === 1) this.#level = CONTEXT.reading;
  }

  /** Reads the segment `at`; `given` is the context that its place has. */
  #readSegment(segments: PathSegments, at: number, given: number): void {
    this.met.beginSegment();
    const { path, count } = segments;
    const start = segments.starts[at]!;
    const stop = segments.stops[at]!;
    const end = segments.ends[at]!;
    const lists = listsAt(segments, at);
    const wasTitleNext = this.#isTitleNext;
    this.#isTitleNext = false;
    // Nothing stands before a text in the last segment, and nobody asks what a segment is in whose words no rule takes an interest.
    const isAsked = isAnyIn(lists, this.#wanted);
    const isAnyNamed = this.#dates.isDated(path, start, end) || wasTitleNext;
    const isNamed = isAnyNamed || (isAsked && this.#outline.isEntry(at));
    const isWhole = stop === end || (isNamed && isWritten(path, stop, end));
    const canBeTitle = isNamed && isWhole && this.#canBeTitle(path, start, end, stop);
    const forum = isAsked ? forumContext(segments, at) : CONTEXT.none;
    const isTitle = canBeTitle || forum === CONTEXT.title;
    const context = Math.max(given, forum, this.#contextAt(start, at, isTitle, isAsked, at < count - 1));
    this.#contexts[at] = context;
    // What a file is does not depend on whether its name is a word: a licensee can add words.
    this.fileContext =
      isAsked && at === count - 1
        ? Math.max(given, this.#contextAt(start, at, isAnyNamed && canBeTitle, false, false))
        : context;
    if (lists.length === 0) return;
    // Of a program it is the name, and what follows is told to it (`/logout.php/x`).
    const isEnd = stop < end && at < count - 1 && PROGRAM.test(path.slice(stop, end));
    this.#mark(segments, at, (this.#isFirst(segments, at) ? ANY | FIRST : ANY) | (isEnd ? LAST : 0));
    // A name that somebody chose announces nothing, whatever stands behind it.
    if (isNamed || context >= CONTEXT.title) {
      // But what a search is made by may stand behind the search: `/search/label/x`, `/quotes/tag/x`.
      this.#isTitleNext = wasTitleNext && stop === end && this.#placeWords.means(lists, MEANING.titleOpener);
      return;
    }
    this.#notePlace(segments, lists, at);
  }

  /**
   * Whether a segment can be a title: not one of a wiki's own pages (`Special:UserLogin`), nor a page with parameters, which has a `=` behind
   * `stop`.
   */
  #canBeTitle(path: string, start: number, end: number, stop: number): boolean {
    const colon = path.slice(start, end).indexOf(':');
    if (colon >= 0 && !this.#placeWords.means(this.#tokens.find(path, start, start + colon), MEANING.wikiNamespace))
      return false;
    return !path.slice(stop, end).includes('=');
  }

  #contextAt(start: number, position: number, isTitle: boolean, isAsked: boolean, isBeforeMore: boolean): number {
    if (position >= this.#sourceFrom) return CONTEXT.source;
    if (isTitle) return CONTEXT.title;
    if (this.#isTopic) return CONTEXT.topic;
    if (!isAsked) return this.#level;
    if ((isBeforeMore && start < this.#outline.textStart) || start > this.#outline.dictionaryEnd) return CONTEXT.topic;
    if (this.#level >= CONTEXT.documentation) return this.#level;
    const isBelowPlace = start > this.#outline.placeEnd;
    const level = Math.max(this.#level, isBelowPlace ? CONTEXT.reading : CONTEXT.none);
    if (!isBeforeMore || level >= CONTEXT.documentation || start >= this.#outline.documentationStart) return level;
    return level === CONTEXT.none ? CONTEXT.reading : CONTEXT.documentation;
  }

  /** Notes what a segment says of those that follow. */
  #notePlace(segments: PathSegments, lists: readonly number[], position: number): void {
    const meaning = this.#placeWords.meaningOf(lists);
    this.#noteLevel(meaning);
    this.#isTitleNext = (meaning & MEANING.titleOpener) !== 0;
    this.#isTopic ||= (meaning & MEANING.topicPlace) !== 0;
    // A repository has an owner and a name; a language is none of them.
    if (position >= 2 && (meaning & MEANING.sourceTree) !== 0 && position >= 2 + this.#languages(segments))
      this.#sourceFrom = position + 2;
  }

  #noteLevel(meaning: number): void {
    if ((meaning & MEANING.reading) === 0) return;
    const level = (meaning & MEANING.workingPlace) === 0 ? CONTEXT.documentation : CONTEXT.reading;
    if (level > this.#level) this.#level = level;
  }

  /** Reads what is told of the last of `count` names, and of those before it, now that it is known to be the last. */
  #readEnd(segments: PathSegments, count: number): void {
    const { path, starts, ends, stops, bits } = segments;
    const last = count - 1;
    const lists = listsAt(segments, last);
    this.#lastStart = starts[last]!;
    this.#lastEnd = ends[last]!;
    this.#lastContext = this.#contexts[last]!;
    // A name that is known is not taken apart; words that a licensee adds take nothing from what ships.
    if (!isAnyIn(lists, this.#tokens.shipped)) {
      // Signs at its end are no part of a name, unless an extension follows.
      const isDotted = path.charCodeAt(stops[last]!) === DOT;
      const stop = isDotted ? stops[last]! : lastLetterEnd(path, this.#lastStart, stops[last]!);
      this.#readProgram(segments, stop, last);
      this.#readOwnName(path, stop);
    }
    if (lists.length > 0) {
      this.#mark(segments, last, LAST);
      if (this.#isFirst(segments, last)) this.#mark(segments, last, ONLY, 1);
      if (last > 0) this.#markAfterKey(segments, last);
    }
    // Every key has one of the two.
    const mayBeKey = count > 1 && (bits[last]! & (SEGMENT_HAS.digit | SEGMENT_HAS.at)) !== 0;
    if (mayBeKey && isKey(path, this.#lastStart, this.#lastEnd)) this.#markBeforeKey(segments, last);
  }

  /** Marks the last word by the name before it. */
  #markAfterKey(segments: PathSegments, last: number): void {
    const { path, starts, ends } = segments;
    if (isAnyIn(listsAt(segments, last), this.#wanted) && isNumberOrKey(path, starts[last - 1]!, ends[last - 1]!))
      this.#mark(segments, last, AFTER_ID, 1);
  }

  /** Whether a segment begins the path: behind a language it does, but where documentation in that language may stand. */
  #isFirst({ path, starts }: PathSegments, at: number): boolean {
    if (at === 0) return true;
    if (this.#contexts[at]! >= CONTEXT.documentation) return false;
    if (this.#firstStart === UNKNOWN) this.#firstStart = afterLanguage(path);
    return starts[at] === this.#firstStart;
  }

  /** How many names at the beginning of the path are a language. */
  #languages({ path, starts }: PathSegments): number {
    if (this.#firstStart === UNKNOWN) this.#firstStart = afterLanguage(path);
    let count = 0;
    while (starts[count]! < this.#firstStart) count++;
    return count;
  }

  /** Marks what stands before the key at `last`: right before it, and before what names the key or says whose it is. */
  #markBeforeKey(segments: PathSegments, last: number): void {
    const { path, starts, ends } = segments;
    this.#mark(segments, last - 1, BEFORE_ID, 1);
    const first = Math.max(0, last - NAMED_MAX);
    let before = last - 1;
    for (; before >= first; before--) {
      const lists = listsAt(segments, before);
      if (this.#placeWords.means(lists, MEANING.keyName)) continue;
      if (lists.length > 0 || !isKeyOrOwner(path, starts[before]!, ends[before]!)) break;
    }
    if (before >= first) this.#mark(segments, before, BEFORE_ID, 1);
  }

  /** Reads the last segment without the site's own name. */
  #readOwnName(path: string, stop: number): void {
    const rest = withoutSiteName(path, this.#lastStart, stop, this.#host);
    if (rest === undefined) return;
    const lists = this.#tokens.find(rest, 0, rest.length).flatMap((list) => this.#ownNameLists.get(list) ?? []);
    this.#markTakenApart(0, lists, ANY | LAST);
  }

  /** Reads the last segment as a program's name. */
  #readProgram(segments: PathSegments, stop: number, last: number): void {
    const name = this.#programs.read(segments.path, this.#lastStart, stop, this.#lastEnd);
    if (name === undefined) return;
    const isFirst = this.#isFirst(segments, last);
    this.#markTakenApart(0, name.lists, isFirst ? ANY | FIRST | LAST : ANY | LAST);
    this.#markTakenApart(1, name.parts, PART);
  }

  /** Marks lists that are told of the last segment only when it is taken apart: it was taken for one without words before. */
  #markTakenApart(table: 0 | 1, lists: readonly number[], positions: number): void {
    if (lists.length === 0) return;
    this.#lastContext = Math.max(this.#lastContext, this.#contextAt(this.#lastStart, -1, false, true, false));
    this.met.mark(table, lists, positions << this.#lastContext);
  }

  /** Marks the lists of a name in its own context. */
  #mark(segments: PathSegments, at: number, positions: number, table: 0 | 1 = 0): void {
    this.met.mark(table, listsAt(segments, at), positions << this.#contexts[at]!);
  }
}

/** Token lists of a name; of somebody's there are none. */
function listsAt({ path, starts, lists }: PathSegments, at: number): readonly number[] {
  return isHandleAt(path, starts[at]!) ? NO_LISTS : lists[at]!;
}

/** Whether somebody's name stands there: behind `@`, and `~` before a user's folder. Two of them open a view of a page (`@@login`). */
function isHandleAt(path: string, start: number): boolean {
  const code = path.charCodeAt(start);
  return code === 0x7e || (code === 0x40 && path.charCodeAt(start + 1) !== 0x40);
}
