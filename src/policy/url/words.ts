/**
 * What path and host say in the policy's own words: which token lists they touch, where, and in which context. One scratch table is
 * filled and cleared for every evaluation, so that nothing is allocated for a URL that touches no list.
 */

import { BoundedCache } from '../../bounded-cache.ts';
import { isPublicSuffix } from '../../domain/public-suffix.ts';
import { isDigit } from './characters.ts';
import { areDigits, isKey, isKeyOrOwner, isNumberOrKey, isYearAt } from './keys.ts';
import { contextsAt, type HostPlaces, isThreadTitle } from './path-contents.ts';
import { type PathSegments, SIGN } from './path-segments.ts';
import { ProgramNames } from './program-names.ts';
import { hasTail, isCutMark, isMethodMark, isSentence, nameStop, wholeNameEnd, wordEnd } from './segments.ts';
import type { TokenIndex } from './tokens.ts';
import { CONTEXT, POSITION } from './word-contexts.ts';

/** Token lists whose words say what stands around them, by their names in the policy. */
const PLACE_LISTS = {
  /** Segments below which everything is reading matter. */
  reading: 'reading',
  /** Those of them that are also a part of a site where things are done; the others are documentation. */
  workingPlace: 'working_place',
  /** The same of a host's label alone. */
  workingHost: 'working_host',
  /** Segments below which a word names a topic, the words for a login too. */
  topicPlace: 'topic_place',
  /** Segments before a title. */
  titleOpener: 'title_opener',
  /** Segments before a branch and its files. */
  sourceTree: 'source_tree',
  /** Segments that stand for their folder. */
  index: 'index',
  /** Segments that end a path of text, whatever stands before them. */
  textPage: 'text_page',
  /** Segments that documentation stands below: what is before one is what that is about. */
  documentationPlace: 'documentation_place',
  /** First labels of hosts for people who build on an interface. */
  developerHost: 'developer_host',
  /** Words that open the title of an explanation. */
  question: 'question_word',
  /** Words that make a place for reading matter of the name of a folder that they begin or end. */
  placeWord: 'place_word',
  /** Words that end the name of a text which explains an act. */
  guideWord: 'guide_word',
  /** Parts of a host's label that say where or for whom it serves. */
  serverPart: 'server_part',
  /** Words before the colon in the title of a wiki's page. */
  wikiNamespace: 'wiki_namespace',
  /** Segments that say what the key behind them is, or what an act is done to: they may stand between the two. */
  keyName: 'key_name',
} as const;

/** Token lists of what a site names after itself, and what a word of them means then; its products are named so, too, and stand in none. */
const OWN_NAME_LISTS = {
  login: 'login',
  signup: 'signup',
  password_reset: 'password_reset',
  account: 'account',
  own_area: 'account',
} as const;

/** A bit for each of {@link PLACE_LISTS}. */
const SAYS = Object.fromEntries(Object.keys(PLACE_LISTS).map((name, at) => [name, 1 << at])) as Readonly<
  Record<keyof typeof PLACE_LISTS, number>
>;

const NO_LISTS: readonly number[] = Object.freeze([]);
/** Extensions of programs that servers run with the rest of the path. */
const PROGRAM = /^\.(?:php[3-8]?|phtml|aspx?|ashx|cgi|pl|cfm)(?![a-z0-9])/i;

const ANY = 1 << POSITION.any.shift;
/** The bits of `any` in all contexts. */
const ANYWHERE = (1 << POSITION.first.shift) - 1;
const FIRST = 1 << POSITION.first.shift;
const LAST = 1 << POSITION.last.shift;
const BEFORE_ID = 1 << POSITION.before_id.shift;
const AFTER_ID = 1 << POSITION.after_id.shift;
const PART = 1 << POSITION.part.shift;
const ONLY = 1 << POSITION.only.shift;
/** The extension of a page that is written, not called: no title ends otherwise. */
const WRITTEN = /^\.html?$/i;
const ENDS_WRITTEN = /\.html?$/i;
/** No more methods of one name are looked at. */
const METHOD_MARKS_MAX = 4;

/** Whether somebody's name stands there: behind `@`, and `~` before a user's folder. Two of them open a view of a page (`@@login`). */
function isHandleAt(path: string, start: number): boolean {
  const code = path.charCodeAt(start);
  return code === 0x7e || (code === 0x40 && path.charCodeAt(start + 1) !== 0x40);
}

/** Extensions behind the name of a method. */
const ACTION_EXTENSIONS: ReadonlySet<string> = new Set(['.action', '.do']);

/** A program's own extension within a path: what follows it is no page of its own. */
const PROGRAM_WITHIN = /\.(?:php[0-9]?|aspx?|jspx?|do|action|cgi|cfm|pl)\//i;

/** Right before stands a name, and a whole date before that. */
const SECTION = -1;

const SUFFIXES_MAX = 4096;
/** So many segments before a key are looked at: those that name it, or say whose it is, and what stands before them. */
const NAMED_MAX = 5;

/** The words of one URL; filled by a layer, cleared before the next URL. */
export class Words {
  /** The two tables of {@link POSITION}: for each token list where it was met, by position and {@link CONTEXT}. */
  readonly tables: readonly [Int32Array, Int32Array];
  /** For each token list that was met, by which segment first, counted over all that was read, and whether by another one as well. */
  readonly #metBy: Int32Array;
  readonly #isMetAgain: Uint8Array;
  #segment = 0;
  /** The lists that were met, in order; those behind `touchedCount` are old. */
  readonly touched: number[] = [];
  touchedCount = 0;
  /** Token lists of the host's first label, where it stands below the registrable domain. */
  hostLists: readonly number[] = NO_LISTS;
  /** What was seen so far: none, reading matter, documentation. */
  #level: number = CONTEXT.none;
  /** Whether the host announces help or news, which are no manual. */
  #isHelpHost = false;
  /** Where the last segment of the path begins and ends, and its context. */
  lastStart = 0;
  lastEnd = 0;
  lastContext = 0;
  /** The context that the places of the host give the last segment. */
  placeContext: number = CONTEXT.none;
  /** For each token list whether a condition asks for it in a path. */
  readonly #wanted: Uint8Array;
  /** The same of those that are not pages for everybody. */
  readonly #acts: Uint8Array;
  readonly #tokens: TokenIndex;
  /** For each token list what its words say of what stands around them: a bit for each of {@link PLACE_LISTS}. */
  readonly #says: Uint16Array;
  /** Whether what follows a host's first label is a public suffix. */
  readonly #suffixes = new BoundedCache<string, boolean>(SUFFIXES_MAX);
  readonly #programs: ProgramNames;
  /** For lists whose words may stand beside the site's own name the list that they then mean. */
  readonly #ownNameLists: ReadonlyMap<number, number>;
  #host = '';
  // Of the last and the last but one segment: which is the last one is known only at the end.
  #lastLists: readonly number[] = NO_LISTS;
  #listsBefore: readonly number[] = NO_LISTS;
  #contextBefore = 0;
  #startBefore = 0;
  #endBefore = 0;
  /** For each segment of the path its token lists and its context; what is behind the last one is old. */
  readonly #listsAt: (readonly number[])[] = [];
  readonly #contextAtSegment: number[] = [];
  // What a segment said of those that follow.
  #isTitleNext = false;
  #isTopic = false;
  /** Where the text begins that the path leads to; words before it are topics. Negative until somebody asks. */
  #textFrom = 0;
  /** Where the last segment begins that documentation stands below. Negative until somebody asks. */
  #documentationFrom = 0;
  /** Where the first folder ends whose name says that people read below it. Negative until somebody asks. */
  #placeTo = 0;
  #path = '';
  /** How many numbers of a date the segments before are: a year, a month, a day; or {@link SECTION}. */
  #dated = 0;
  /** Segments from this one on are source files; the one before is the branch. */
  #sourceFrom = 0;

  /** @throws PagegateError policy_invalid, where a list is missing */
  constructor(tokens: TokenIndex, acts: Uint8Array, openPages: number) {
    this.#tokens = tokens;
    this.#acts = acts;
    this.#wanted = acts.slice();
    this.#wanted[openPages] = 1;
    this.#programs = new ProgramNames(tokens);
    const ownNameLists = Object.entries(OWN_NAME_LISTS);
    this.#ownNameLists = new Map(ownNameLists.map(([from, to]) => [tokens.ordinal(from), tokens.ordinal(to)]));
    const size = tokens.names.length;
    this.#says = new Uint16Array(size);
    for (const [name, list] of Object.entries(PLACE_LISTS))
      this.#says[tokens.ordinal(list)]! |= SAYS[name as keyof typeof SAYS];
    this.tables = [new Int32Array(size), new Int32Array(size)];
    this.#metBy = new Int32Array(size);
    this.#isMetAgain = new Uint8Array(size);
  }

  /** The context of a word behind all that was read. */
  get context(): number {
    return this.#isTopic || this.#text > 0 ? CONTEXT.topic : this.#level;
  }

  /** Whether words of two lists stand in two segments: one word can be in both. */
  areApart(list: number, other: number): boolean {
    if (this.#metBy[list] !== this.#metBy[other]) return true;
    return this.#isMetAgain[list] === 1 || this.#isMetAgain[other] === 1;
  }

  /** Whether a word of a list stands in what was read. */
  hasMet(list: number): boolean {
    return this.tables[0][list] !== 0;
  }

  clear(): void {
    this.forget();
    this.#level = CONTEXT.none;
    this.#isTopic = false;
    this.#textFrom = 0;
    this.#host = '';
    this.#isHelpHost = false;
  }

  /** Forgets what was met, but not whether it was reading matter. */
  forget(): void {
    const [places, ends] = this.tables;
    for (let at = 0; at < this.touchedCount; at++) {
      const list = this.touched[at]!;
      places[list] = 0;
      ends[list] = 0;
      this.#isMetAgain[list] = 0;
    }
    this.#segment = 0;
    this.touchedCount = 0;
    this.hostLists = NO_LISTS;
    this.lastStart = 0;
    this.lastEnd = 0;
  }

  readHost(host: string): void {
    this.#host = host;
    const dot = host.indexOf('.');
    if (dot < 0 || host.indexOf('.', dot + 1) < 0) return;
    const lists = this.#listsOfLabel(host, dot);
    if (lists.length === 0 || this.#isSuffix(host.slice(dot + 1))) return;
    this.hostLists = lists;
    const says = this.#saidBy(lists);
    this.#noteLevel((says & SAYS.workingHost) === 0 ? says : says | SAYS.workingPlace);
    const isManual = (says & (SAYS.documentationPlace | SAYS.developerHost)) !== 0;
    this.#isHelpHost = this.#level === CONTEXT.documentation && !isManual;
  }

  #isSuffix(host: string): boolean {
    return this.#suffixes.get(host) ?? this.#suffixes.keep(host, isPublicSuffix(host, { private: true }));
  }

  /** Lists of a host's first label; where it is in none, without a number or a part that says where it serves (`login2`, `sso-eu`). */
  #listsOfLabel(host: string, dot: number): readonly number[] {
    const whole = this.#tokens.find(host, 0, dot);
    if (whole.length > 0) return whole;
    const first = hyphenIn(host, dot);
    if (first < 0 && !isDigit(host.charCodeAt(dot - 1))) return NO_LISTS;
    let end = dot;
    while (end > 0 && isDigit(host.charCodeAt(end - 1))) end--;
    if (end === 0) return NO_LISTS;
    if (end < dot && host.charCodeAt(end - 1) === 0x2d) end--;
    const hyphen = host.lastIndexOf('-', end - 1);
    if (hyphen <= 0) return end === dot ? NO_LISTS : this.#tokens.find(host, 0, end);
    const isPart = (start: number, stop: number): boolean =>
      this.#isSaid(this.#tokens.find(host, start, stop), SAYS.serverPart);
    if (isPart(hyphen + 1, end)) return this.#tokens.find(host, 0, hyphen);
    return isPart(0, first) ? this.#tokens.find(host, first + 1, end) : this.#tokens.find(host, 0, end);
  }

  /** Reads a path that only some clients or servers see: what it says of reading matter holds for itself alone. */
  readPathApart(path: string, places?: HostPlaces): void {
    const level = this.#level;
    this.readPath(path, places);
    this.#level = level;
  }

  /** Reads a path, or a fragment that is a route of the page's own. `places` are those of the host. */
  readPath(wholePath: string, places?: HostPlaces): void {
    const segments = this.#tokens.segments(wholePath);
    this.#lastLists = NO_LISTS;
    this.#listsBefore = NO_LISTS;
    this.lastStart = 0;
    this.lastEnd = 0;
    this.#isTitleNext = false;
    this.#isTopic = false;
    this.#path = wholePath;
    this.#textFrom = -1;
    this.#documentationFrom = -1;
    this.#placeTo = -1;
    this.#sourceFrom = Number.POSITIVE_INFINITY;
    this.#dated = 0;
    // A single word is a page of the site itself there, and no article.
    if (this.#isHelpHost && segments.count === 1) this.#level = CONTEXT.reading;
    const given = places === undefined ? undefined : contextsAt(places, segments, this.#wanted);
    const everywhere = places?.everywhere ?? CONTEXT.none;
    let position = 0;
    let before = -1;
    let last = -1;
    for (let at = 0; at < segments.count; at++) {
      if (segments.stops[at] === segments.starts[at]) continue;
      this.#readSegment(segments, at, position, given?.[position] ?? everywhere);
      this.#listsAt[at] = this.#lastLists;
      this.#contextAtSegment[at] = this.lastContext;
      before = last;
      last = at;
      position++;
    }
    this.placeContext = given?.[position - 1] ?? everywhere;
    if (last < 0) return;
    this.lastStart = segments.starts[last]!;
    this.lastEnd = segments.ends[last]!;
    this.#startBefore = before < 0 ? 0 : segments.starts[before]!;
    this.#endBefore = before < 0 ? 0 : segments.ends[before]!;
    if (position === 1) this.#mark(1, this.#lastLists, ONLY << this.lastContext);
    this.#readEnd(segments.path, segments.stops[last]!);
    this.#markBeforeKey(segments, last);
  }

  get #text(): number {
    if (this.#textFrom < 0) this.#textFrom = this.#textStart(this.#tokens.segments(this.#path));
    return this.#textFrom;
  }

  /** Where a segment begins before which all words are topics: a sentence, or the last one where it says that a text is there; else 0. */
  #textStart(segments: PathSegments): number {
    const { path, count, starts, stops, lists } = segments;
    if (count === 0) return 0;
    const last = count - 1;
    const isText =
      lists[last]!.length > 0
        ? this.#isSaid(lists[last]!, SAYS.textPage)
        : this.#isPlaceName(path, starts[last]!, stops[last]!) || this.#isTextFile(segments);
    if (lists[last]!.length > 0 && !isText) return 0;
    const text = isText ? starts[last]! : this.#lastSentence(segments);
    return text > 0 && !PROGRAM_WITHIN.test(path) ? text : 0;
  }

  /** Whether the last segment is a file that sites have for programs (`robots.txt`), without a sign that some servers cut it at. */
  #isTextFile(segments: PathSegments): boolean {
    const last = segments.count - 1;
    const isFile = segments.dots[last]! > segments.starts[last]! && (segments.bits[last]! & SIGN.odd) === 0;
    return isFile && this.#isSaid(segments.listsOfLastFile(), SAYS.textPage);
  }

  /** Where the last segment begins that documentation stands below: what is before says what that is about. 0 where there is none. */
  get #documentation(): number {
    if (this.#documentationFrom >= 0) return this.#documentationFrom;
    const { count, starts, lists } = this.#tokens.segments(this.#path);
    let at = count - 2;
    while (at > 0 && !this.#isSaid(lists[at]!, SAYS.documentationPlace)) at--;
    this.#documentationFrom = at > 0 ? starts[at]! : 0;
    return this.#documentationFrom;
  }

  /** Where the first folder ends that is named after a place for reading matter (`service-hilfe`); infinite where none is. */
  get #placeEnd(): number {
    if (this.#placeTo < 0) this.#placeTo = this.#firstPlace(this.#tokens.segments(this.#path));
    return this.#placeTo;
  }

  #firstPlace({ path, count, starts, stops, ends, bits, lists }: PathSegments): number {
    for (let at = 0; at < count - 1; at++) {
      const end = ends[at]!;
      const hasWords = (bits[at]! & SIGN.separator) !== 0 && stops[at] === end && lists[at]!.length === 0;
      if (hasWords && this.#isPlaceName(path, starts[at]!, end)) return end;
    }
    return Number.POSITIVE_INFINITY;
  }

  /**
   * Whether the first or the last of several words is one for such a place, and none is one for an act; or the last of three is one for a text
   * that explains them.
   */
  #isPlaceName(path: string, start: number, end: number): boolean {
    let words = 0;
    let isPlace = false;
    let hasAct = false;
    let lists = NO_LISTS;
    for (let from = start; from < end; ) {
      const to = wordEnd(path, from, end);
      if (to < 0) return false;
      lists = this.#tokens.find(path, from, to);
      const isPlaceWord = this.#isSaid(lists, SAYS.placeWord);
      hasAct ||= !isPlaceWord && this.#isAnyAct(lists);
      if (words === 0 || to === end) isPlace ||= isPlaceWord;
      words++;
      from = to + 1;
    }
    return (isPlace && !hasAct && words > 1) || (words > 2 && this.#isSaid(lists, SAYS.guideWord));
  }

  /** Where the last segment begins that is a sentence; 0 where none is. */
  #lastSentence({ path, count, starts, ends, bits }: PathSegments): number {
    const asks = (start: number, end: number): boolean =>
      this.#isSaid(this.#tokens.find(path, start, end), SAYS.question);
    for (let at = count - 1; at >= 0; at--) {
      if ((bits[at]! & SIGN.separator) !== 0 && isSentence(path, starts[at]!, ends[at]!, asks)) return starts[at]!;
    }
    return 0;
  }

  /** What is said of the last segment, and of the one before. */
  #readEnd(path: string, lastStop: number): void {
    const before = this.#listsBefore;
    if (this.#lastLists.length === 0) {
      this.#readProgram(path, lastStop);
      this.#readOwnName(path, lastStop);
    }
    this.#mark(0, this.#lastLists, LAST << this.lastContext);
    if (this.#isSaid(this.#lastLists, SAYS.index)) this.#mark(0, before, LAST << this.#contextBefore);
    if (this.#isAnyWanted(this.#lastLists) && isNumberOrKey(path, this.#startBefore, this.#endBefore)) {
      this.#mark(1, this.#lastLists, AFTER_ID << this.lastContext);
    }
  }

  /** Marks what stands before a key in the last segment: right before it, and before what names the key or says whose it is. */
  #markBeforeKey({ path, starts, ends, stops }: PathSegments, last: number): void {
    if (last === 0 || !isKey(path, this.lastStart, this.lastEnd)) return;
    this.#mark(1, this.#listsBefore, BEFORE_ID << this.#contextBefore);
    const first = Math.max(0, last - NAMED_MAX);
    let at = last - 1;
    for (; at >= first; at--) {
      const isNameless = stops[at] === starts[at];
      if (isNameless || this.#isSaid(this.#listsAt[at]!, SAYS.keyName)) continue;
      if (this.#listsAt[at]!.length > 0 || !isKeyOrOwner(path, starts[at]!, ends[at]!)) break;
    }
    if (at >= first) this.#mark(1, this.#listsAt[at]!, BEFORE_ID << this.#contextAtSegment[at]!);
  }

  /** Reads the last segment without the site's own name: `my-example-login`, `ExampleLogon`, `myexample` of `example.org`. */
  #readOwnName(path: string, stop: number): void {
    const first = this.lastStart;
    if (stop - first > OWN_NAME_MAX_LENGTH) return;
    const end = siteEnd(this.#host);
    const start = siteStart(this.#host, end);
    const size = end - start;
    const last = stop - size;
    if (size < SITE_MIN_LENGTH || last <= first) return;
    // It stands at the end, at the beginning, or behind a short word for what is one's own: with an m in most languages.
    let at = last;
    if (!standsAt(path, at, this.#host, start, end)) {
      const isOwn = (path.charCodeAt(first) | 0x20) === 0x6d;
      const furthest = Math.min(last - 1, isOwn ? first + OWN_WORD_MAX_LENGTH : first);
      for (at = first; at <= furthest && !standsAt(path, at, this.#host, start, end); ) at++;
      if (at > furthest) return;
    }
    const rest = path.slice(first, at) + path.slice(at + size, stop);
    const lists = this.#tokens.find(rest, 0, rest.length).flatMap((list) => this.#ownNameLists.get(list) ?? []);
    this.#markEnd(0, lists, ANY | LAST);
  }

  /** Reads the last segment as a program's name. */
  #readProgram(path: string, stop: number): void {
    const name = this.#programs.read(path, this.lastStart, stop, this.lastEnd);
    if (name === undefined) return;
    this.#markEnd(0, name.lists, ANY | LAST);
    this.#markEnd(1, name.parts, PART);
  }

  /** Reads the segment `at`; `given` is the context that its place has. */
  #readSegment(segments: PathSegments, at: number, position: number, given: number): void {
    this.#segment++;
    const { path } = segments;
    const start = segments.starts[at]!;
    const stop = segments.stops[at]!;
    const end = segments.ends[at]!;
    const isCut = stop < end && isCutMark(path.charCodeAt(stop));
    // Many servers know only the whole name, so it alone can excuse what is below.
    const wholeEnd = isCut ? wholeNameEnd(path, stop, end) : stop;
    const isHandle = isHandleAt(path, start);
    const whole = isHandle ? NO_LISTS : isCut ? this.#tokens.findName(path, start, wholeEnd) : segments.lists[at]!;
    const wasTitleNext = this.#isTitleNext;
    const isNamed = this.#noteDate(path, start, end) || wasTitleNext;
    const isWhole = wholeEnd === end || (isNamed && WRITTEN.test(path.slice(wholeEnd, end)));
    let isTitle = isNamed && isWhole && this.#canBeTitle(path, start, end, stop);
    this.#isTitleNext = false;
    this.#listsBefore = this.#lastLists;
    this.#contextBefore = this.lastContext;
    this.#lastLists = isCut && !isHandle ? this.#listsOfCut(path, start, stop, wholeEnd, end) : whole;
    // Nothing stands before a text in the last segment, and nobody asks what a segment is in whose words no rule takes an interest.
    const isAsked = this.#isAnyWanted(this.#lastLists);
    isTitle ||= isAsked && isThreadTitle(segments, at);
    this.lastContext = Math.max(given, this.#contextAt(start, position, isTitle, isAsked, end < path.length));
    if (this.#lastLists.length === 0) return;
    // Of a program it is the name, and what follows is told to it (`/logout.php/x`).
    const isEnd = end < path.length && PROGRAM.test(path.slice(stop, end));
    this.#mark(0, this.#lastLists, ((position === 0 ? ANY | FIRST : ANY) | (isEnd ? LAST : 0)) << this.lastContext);
    // A name that somebody chose announces nothing, whatever stands behind it.
    if (isNamed || this.lastContext >= CONTEXT.title || (!isCut && hasTail(path, stop, end))) {
      // But what a search is made by may stand behind the search: `/search/label/x`, `/quotes/tag/x`.
      this.#isTitleNext = wasTitleNext && wholeEnd === end && this.#isSaid(whole, SAYS.titleOpener);
      return;
    }
    this.#notePlace(whole, position);
  }

  /**
   * Whether a segment can be a title: not one of a wiki's own pages (`Special:UserLogin`), nor a page with parameters, which has a `=` behind
   * `stop`.
   */
  #canBeTitle(path: string, start: number, end: number, stop: number): boolean {
    const colon = path.slice(start, end).indexOf(':');
    if (colon >= 0 && !this.#isSaid(this.#tokens.find(path, start, start + colon), SAYS.wikiNamespace)) return false;
    return !path.slice(stop, end).includes('=');
  }

  #contextAt(start: number, position: number, isTitle: boolean, isAsked: boolean, isBeforeMore: boolean): number {
    if (position >= this.#sourceFrom) return CONTEXT.source;
    if (isTitle) return CONTEXT.title;
    if (this.#isTopic || (isAsked && isBeforeMore && start < this.#text)) return CONTEXT.topic;
    if (this.#level >= CONTEXT.documentation || !isAsked) return this.#level;
    const level = Math.max(this.#level, start > this.#placeEnd ? CONTEXT.reading : CONTEXT.none);
    if (!isBeforeMore || level >= CONTEXT.documentation || start >= this.#documentation) return level;
    return level === CONTEXT.none ? CONTEXT.reading : CONTEXT.documentation;
  }

  /**
   * Whether a year and a month stand right before: what follows them is the title of an article. Behind a whole date it may be the name
   * of a section, and the article a page in it.
   */
  #noteDate(path: string, start: number, end: number): boolean {
    const isNumber = end - start <= 4 && areDigits(path, start, end);
    const isYear = isNumber && isYearAt(path, start, end);
    const dated = this.#dated;
    const isDated = !isNumber && (dated >= 2 || (dated === SECTION && ENDS_WRITTEN.test(path.slice(start, end))));
    if (isYear) this.#dated = 1;
    else if (isNumber && dated > 0 && end - start <= 2) this.#dated = dated + 1;
    else this.#dated = isDated && dated === 3 ? SECTION : 0;
    return isDated;
  }

  /** Notes what a segment says of those that follow. */
  #notePlace(lists: readonly number[], position: number): void {
    const says = this.#saidBy(lists);
    this.#noteLevel(says);
    this.#isTitleNext = (says & SAYS.titleOpener) !== 0;
    this.#isTopic ||= (says & SAYS.topicPlace) !== 0;
    // A repository has an owner and a name.
    if (position >= 2 && (says & SAYS.sourceTree) !== 0) this.#sourceFrom = position + 2;
  }

  #noteLevel(says: number): void {
    if ((says & SAYS.reading) === 0) return;
    const level = (says & SAYS.workingPlace) === 0 ? CONTEXT.documentation : CONTEXT.reading;
    if (level > this.#level) this.#level = level;
  }

  /** What a word says of what stands around it, as bits. */
  #saidBy(lists: readonly number[]): number {
    let says = 0;
    for (let at = 0; at < lists.length; at++) says |= this.#says[lists[at]!]!;
    return says;
  }

  /** Whether a word says one thing. */
  #isSaid(lists: readonly number[], what: number): boolean {
    return (this.#saidBy(lists) & what) !== 0;
  }

  /** Lists of a name that signs cut: of the part before each, of the whole, and of a method of an action (`x!login.action`). */
  #listsOfCut(path: string, start: number, stop: number, wholeEnd: number, end: number): readonly number[] {
    const part = this.#tokens.findName(path, start, stop);
    const whole = this.#tokens.findName(path, start, wholeEnd);
    const extensionEnd = nameStop(path, wholeEnd, end);
    const isMethod =
      isMethodMark(path, stop, end) && ACTION_EXTENSIONS.has(path.slice(wholeEnd, extensionEnd).toLowerCase());
    const method = isMethod ? this.#tokens.find(path, stop + 1, wholeEnd) : [];
    const lists = new Set([...part, ...whole, ...method]);
    for (let at = stop + 1, marks = 0; at < wholeEnd && marks < METHOD_MARKS_MAX; at++) {
      if (!isMethodMark(path, at, end)) continue;
      marks++;
      for (const list of this.#tokens.findName(path, start, at)) lists.add(list);
    }
    return [...lists];
  }

  /** Marks lists that are told of the last segment only when it is taken apart: it was taken for one without words before. */
  #markEnd(table: 0 | 1, lists: readonly number[], positions: number): void {
    if (lists.length === 0) return;
    this.lastContext = Math.max(this.lastContext, this.#contextAt(this.lastStart, -1, false, true, false));
    this.#mark(table, lists, positions << this.lastContext);
  }

  #mark(table: 0 | 1, lists: readonly number[], bits: number): void {
    const own = this.tables[table];
    const other = this.tables[table === 0 ? 1 : 0];
    // What is said of a segment at the end of the path was met before.
    const isSegment = table === 0 && (bits & ANYWHERE) !== 0;
    for (let at = 0; at < lists.length; at++) {
      const list = lists[at]!;
      if (this.#wanted[list] === 0) continue;
      if (own[list] === 0 && other[list] === 0) {
        this.touched[this.touchedCount++] = list;
        this.#metBy[list] = this.#segment;
      } else if (isSegment && this.#metBy[list] !== this.#segment) this.#isMetAgain[list] = 1;
      own[list]! |= bits;
    }
  }

  #isAnyWanted(lists: readonly number[]): boolean {
    return isAnyIn(lists, this.#wanted);
  }

  #isAnyAct(lists: readonly number[]): boolean {
    return isAnyIn(lists, this.#acts);
  }
}

function isAnyIn(lists: readonly number[], set: Uint8Array): boolean {
  for (let at = 0; at < lists.length; at++) if (set[lists[at]!] === 1) return true;
  return false;
}

/** Where the first hyphen of a host's first label stands; -1 where there is none. */
function hyphenIn(host: string, dot: number): number {
  for (let at = 0; at < dot; at++) if (host.charCodeAt(at) === 0x2d) return at;
  return -1;
}

/** Shorter names stand in other words. */
const SITE_MIN_LENGTH = 3;
/** Longer segments are titles. */
const OWN_NAME_MAX_LENGTH = 32;
/** So long is a word for what is one's own, and a sign behind it. */
const OWN_WORD_MAX_LENGTH = 7;

/**
 * Where the label of a host ends by which people know the site: the last one before the suffix that is no part of that, told by its length;
 * 0 where there is none.
 */
function siteEnd(host: string): number {
  for (let end = host.lastIndexOf('.'); end > 0; ) {
    const start = siteStart(host, end);
    if (end - start > SITE_MIN_LENGTH || start === 0) return end;
    end = start - 1;
  }
  return 0;
}

function siteStart(host: string, end: number): number {
  return host.lastIndexOf('.', end - 1) + 1;
}

/** Whether what stands in a host from `start` to `end` stands at a place of the path, in any case. */
function standsAt(path: string, at: number, host: string, start: number, end: number): boolean {
  for (let own = start; own < end; own++) {
    const code = path.charCodeAt(at + own - start);
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== host.charCodeAt(own)) return false;
  }
  return true;
}
