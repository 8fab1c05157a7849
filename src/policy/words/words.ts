/**
 * Finds the policy's words in the host and path of a URL: which token lists they are in, at which position and in which context.
 *
 * How a path is read, with `/docs/login` as the example:
 * 1. `PathSegments` splits it into segments: `docs` and `login`.
 * 2. `TokenIndex` has the token lists of each segment: `docs` is in the list `reading`, `login` in the list `login`.
 * 3. A segment can set the context of those below it. `docs` announces documentation, so the context of `login` is `documentation`.
 * 4. `MetWords` has a bit mask for each list, with one bit for each position and context. The mask of the list `login` gets the bits of
 *    the positions `any` and `last` in the context `documentation`.
 * 5. Conditions of rules are such masks, too. The rule `login` asks for `any` in the contexts `none` and `reading`: `bits & mask` is 0, so
 *    that condition does not hold. In `/login` the context is `none`, so it holds, and the rule denies.
 */

import { DOT } from '../../bytes/ascii.ts';
import type { HostFilter } from '../url/host-map.ts';
import { isKey, isKeyOrOwner, isNumberOrKey } from '../url/keys.ts';
import { afterLanguage } from '../url/languages.ts';
import { readingsOf } from '../url/path-readings.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { lastLetterEnd } from '../url/segments.ts';
import { DatedFolders, isWritten } from './dated-folders.ts';
import { HostLabels } from './host-labels.ts';
import { MetWords } from './met-words.ts';
import { forumContext, type HostPlaces, writeContexts } from './path-contents.ts';
import { PathOutline } from './path-outline.ts';
import { MEANING, PlaceWords } from './place-words.ts';
import { type ProgramName, ProgramNames } from './program-names.ts';
import { withoutSiteName } from './site-name.ts';
import { isAnyIn, NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';
import { CONTEXT, POSITION } from './word-contexts.ts';

/**
 * Token lists that also count beside the site's own name (`myexample`), each with the list that its words then count as. All others are
 * left out, because sites name their products like that, too.
 */
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

/** Extensions of programs to which servers pass the rest of the path. */
const PROGRAM = /^\.(?:php[3-8]?|phtml|aspx?|ashx|cgi|pl|cfm)(?![a-z0-9])/i;
const UNKNOWN = -1;
/** At most this many segments before a key are examined: those that name the key or its owner, and the one before them. */
const LOOKBACK_MAX = 5;

/** The token lists that conditions use for segments of a path. Each has a 1 for every such list. */
export interface PathConditions {
  readonly inPath: Uint8Array;
  /** Those of conditions that ask for no other word of the path or the host. */
  readonly inPathAlone: Uint8Array;
}

/** The words of one URL. A layer fills it, and clears it before the next URL. */
export class Words {
  readonly met: MetWords;
  /** Token lists of the host's first label, if that label is below the registrable domain. */
  hostLists: readonly number[] = NO_LISTS;
  /** The context of the last segment when it is read as a file. Computed only if something is called after each reading. */
  fileContext: number = CONTEXT.none;
  #needsFileContext = false;
  /** Start and end offset of the path's last segment, and its context. */
  #lastStart = 0;
  #lastEnd = 0;
  #lastContext: number = CONTEXT.none;
  readonly #tokens: TokenIndex;
  /** For each token list, 1 if a condition asks for it in a path, or if it is the list of pages for everybody. */
  readonly #wanted: Uint8Array;
  /** For each token list, 1 if a condition asks for it in a path. */
  readonly #acts: Uint8Array;
  /** The same if a condition asks for no other word. */
  readonly #actsAlone: Uint8Array;
  readonly #placeWords: PlaceWords;
  readonly #hosts: HostFilter;
  readonly #hostLabels: HostLabels;
  readonly #outline: PathOutline;
  readonly #dates = new DatedFolders();
  readonly #programs: ProgramNames;
  /** Maps a list to the one that its words count as beside the site's own name. */
  readonly #ownNameLists: ReadonlyMap<number, number>;
  #host = '';
  /** Whether the host announces help or news rather than a manual. */
  #isHelpHost = false;
  /** The context of each segment. Entries after the last segment are stale. */
  readonly #contexts: number[] = [];
  /** The context that the host's places give each segment and what follows the path. Later entries are stale. */
  readonly #placeContexts: number[] = [];
  // What the host and earlier segments announce for the segments that follow.
  /** The context that the host's places give the last segment or what follows it, whichever is higher. */
  #placeContext: number = CONTEXT.none;
  /** `none`, `reading` or `documentation`. */
  #level: number = CONTEXT.none;
  #isTitleNext = false;
  #isTopic = false;
  /** Index of the first segment that is a source file; the one before it is the branch. */
  #sourceFrom = 0;
  /** Offset where the path begins after a language, computed on first use. The segment there counts as the first one, too. */
  #firstStart = UNKNOWN;

  /**
   * @param conditions the token lists that conditions use in paths
   * @param openPages the list of pages for everybody, which is recorded as well
   * @param hosts reads the hosts
   * @throws PagegateError policy_invalid, if a list is missing
   */
  constructor(tokens: TokenIndex, conditions: PathConditions, openPages: number, hosts: HostFilter) {
    const { inPath: acts, inPathAlone } = conditions;
    this.#tokens = tokens;
    this.#hosts = hosts;
    this.#acts = acts;
    this.#actsAlone = inPathAlone;
    this.#wanted = acts.slice();
    this.#wanted[openPages] = 1;
    this.met = new MetWords(tokens, this.#wanted);
    this.#placeWords = new PlaceWords(tokens);
    this.#hostLabels = new HostLabels(tokens, this.#placeWords, hosts);
    this.#outline = new PathOutline(tokens, this.#placeWords, acts);
    this.#programs = new ProgramNames(tokens);
    const ownNameLists = Object.entries(OWN_NAME_LISTS);
    this.#ownNameLists = new Map(ownNameLists.map(([from, to]) => [tokens.ordinal(from), tokens.ordinal(to)]));
  }

  /** The context of whatever would follow the path that was read, by its words or by the host's places. */
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

  /** Forgets the words that were met, but keeps the context that host and path announced. */
  forget(): void {
    this.met.clear();
    this.hostLists = NO_LISTS;
  }

  /** Takes the value of a parameter that names an act apart, like the name of a program. */
  readAct(value: string): ProgramName | undefined {
    return this.#programs.readAct(value);
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

  /** Reads a path that only some clients see. The context that it announces does not apply to what is read later. */
  readPathApart(path: string): void {
    const level = this.#level;
    this.readPath(path, undefined);
    this.#level = level;
  }

  /**
   * Whether a path with a single reading has too few words for any condition, so that reading it would only show which context it
   * announces. A condition that asks for two words needs two segments, or a label of the host.
   */
  hasTooFewWords(segments: PathSegments): boolean {
    const { count, allCount, lists } = segments;
    let left = this.hostLists.length === 0 ? 1 : 0;
    for (let at = 0; at < allCount; at++) {
      const word = lists[at]!;
      if (word.length > 0 && isAnyIn(word, this.#acts) && (left-- === 0 || isAnyIn(word, this.#actsAlone)))
        return false;
    }
    for (let at = Math.max(0, count - 1); at < allCount; at++) if (this.#hasInnerWords(segments, at)) return false;
    return true;
  }

  /** Whether there are words of conditions inside the name of the segment at index `at`, as the last one of the path. */
  #hasInnerWords(segments: PathSegments, at: number): boolean {
    if (this.#isKnownName(segments, at)) return false;
    const stop = innerStop(segments, at);
    const name = this.#programs.read(segments.path, segments.starts[at]!, stop, segments.ends[at]!);
    if (name !== undefined && (isAnyIn(name.lists, this.#acts) || isAnyIn(name.parts, this.#acts))) return true;
    return isAnyIn(this.#listsBesideOwnName(segments, at, stop), this.#acts);
  }

  /**
   * Reads a path, or a fragment that is a route of the page's own code, in all its readings. What is read later gets the context that all
   * of them announce.
   * @param places the host's places
   * @param afterReading called after each reading
   */
  readPath(path: string, places: HostPlaces | undefined, afterReading?: (segments: PathSegments) => void): void {
    this.#needsFileContext = afterReading !== undefined;
    const segments = this.#tokens.segments(path);
    const readings = readingsOf(path, segments);
    if (readings === undefined) {
      this.#readOne(path, segments, places);
      afterReading?.(segments);
      return;
    }
    const levelBefore = this.#level;
    let lowest: number = CONTEXT.source;
    for (const reading of readings) {
      this.#level = levelBefore;
      this.#readOne(reading, this.#tokens.segments(reading), places);
      afterReading?.(this.#tokens.segments(reading));
      lowest = Math.min(lowest, this.#level);
    }
    this.#level = lowest;
  }

  #readOne(path: string, segments: PathSegments, places: HostPlaces | undefined): void {
    const { count, allCount } = segments;
    this.#beginPath(path, count);
    const contexts = this.#placeContexts;
    if (places !== undefined) writeContexts(places, segments, this.#wanted, contexts);
    for (let at = 0; at < count; at++)
      this.#readSegment(segments, at, places === undefined ? CONTEXT.none : contexts[at]!);
    const lastContext = places === undefined || count === 0 ? CONTEXT.none : contexts[count - 1]!;
    this.#placeContext = places === undefined ? CONTEXT.none : Math.max(lastContext, contexts[count]!);
    if (count > 0) this.#readEnd(segments, count);
    if (allCount === count) return;
    // Index files are read as words, too. Their context is that of what follows the folder.
    const { context } = this;
    for (let at = count; at < allCount; at++) {
      this.met.beginSegment();
      this.#contexts[at] = context;
      this.fileContext = context;
      this.#markSegment(segments, at, true, true);
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
    // On such a host, a single segment is a page of the site itself rather than an article.
    if (this.#isHelpHost && count === 1) this.#level = CONTEXT.reading;
  }

  /** Reads the segment at index `at`. `placeContext` is the context that the host's places give it. */
  #readSegment(segments: PathSegments, at: number, placeContext: number): void {
    this.met.beginSegment();
    const { path, count } = segments;
    const start = segments.starts[at]!;
    const stop = segments.stops[at]!;
    const end = segments.ends[at]!;
    const lists = listsAt(segments, at);
    const wasTitleNext = this.#isTitleNext;
    this.#isTitleNext = false;
    // Skip the costlier checks if no rule uses this segment's words.
    const isWanted = isAnyIn(lists, this.#wanted);
    const hasDigit = (segments.bits[at]! & SEGMENT_HAS.digit) !== 0;
    const isAfterOpener = this.#dates.isDated(path, start, end, hasDigit) || wasTitleNext;
    const isFreeName = isAfterOpener || (isWanted && this.#outline.isEntry(at));
    const isWholeName = stop === end || (isFreeName && isWritten(path, stop, end));
    const canBeTitle = isFreeName && isWholeName && this.#canBeTitle(path, start, end, stop);
    const forum = isWanted ? forumContext(segments, at) : CONTEXT.none;
    const isTitle = canBeTitle || forum === CONTEXT.title;
    const context = Math.max(placeContext, forum, this.#contextAt(start, at, isTitle, isWanted, at < count - 1));
    this.#contexts[at] = context;
    // The context of a file must not depend on whether its name is a word, because a licensee can add words.
    this.fileContext =
      this.#needsFileContext && isWanted && at === count - 1
        ? Math.max(placeContext, this.#contextAt(start, at, isAfterOpener && canBeTitle, false, false))
        : context;
    if (lists.length === 0) return;
    // A program's name counts as the last segment: the server passes it the rest of the path (`/logout.php/x`).
    const isProgram = stop < end && at < count - 1 && PROGRAM.test(path.slice(stop, end));
    if (isWanted) this.#markSegment(segments, at, isProgram || at === count - 1, at === count - 1);
    // A freely chosen name announces nothing about what follows it.
    if (isFreeName || context >= CONTEXT.title) {
      // Except that the kind of a search may follow the word for it: `/search/label/x`, `/quotes/tag/x`.
      this.#isTitleNext = wasTitleNext && stop === end && this.#placeWords.means(lists, MEANING.titleOpener);
      return;
    }
    this.#notePlace(segments, lists, at);
  }

  /**
   * Whether a segment can be a title. A wiki's own page (`Special:UserLogin`) cannot, and neither can a page with parameters, which has a
   * `=` after `stop`.
   */
  #canBeTitle(path: string, start: number, end: number, stop: number): boolean {
    const colon = path.slice(start, end).indexOf(':');
    if (colon >= 0 && !this.#placeWords.means(this.#tokens.find(path, start, start + colon), MEANING.wikiNamespace))
      return false;
    return !path.slice(stop, end).includes('=');
  }

  /**
   * Returns the context of the segment that starts at offset `start`. `isBeforeMore`: whether segments follow it, because only then can it
   * come before a text or before documentation.
   */
  #contextAt(start: number, position: number, isTitle: boolean, isWanted: boolean, isBeforeMore: boolean): number {
    if (position >= this.#sourceFrom) return CONTEXT.source;
    if (isTitle) return CONTEXT.title;
    if (this.#isTopic) return CONTEXT.topic;
    if (!isWanted) return this.#level;
    if (isBeforeMore && start < this.#outline.textStart) return CONTEXT.topic;
    // Nothing comes before the first segment.
    const isBelow = position !== 0;
    if (isBelow && start > this.#outline.dictionaryEnd) return CONTEXT.topic;
    if (this.#level >= CONTEXT.documentation) return this.#level;
    const isBelowPlace = isBelow && start > this.#outline.placeEnd;
    const level = Math.max(this.#level, isBelowPlace ? CONTEXT.reading : CONTEXT.none);
    if (!isBeforeMore || level >= CONTEXT.documentation || start >= this.#outline.documentationStart) return level;
    return level === CONTEXT.none ? CONTEXT.reading : CONTEXT.documentation;
  }

  /** Records what a segment announces for the segments that follow. */
  #notePlace(segments: PathSegments, lists: readonly number[], position: number): void {
    const meaning = this.#placeWords.meaningOf(lists);
    this.#noteLevel(meaning);
    this.#isTitleNext = (meaning & MEANING.titleOpener) !== 0;
    this.#isTopic ||= (meaning & MEANING.topicPlace) !== 0;
    // An owner and a name come before it, not counting a language.
    if (position >= 2 && (meaning & MEANING.sourceTree) !== 0 && position >= 2 + this.#languageCount(segments))
      this.#sourceFrom = position + 2;
  }

  #noteLevel(meaning: number): void {
    if ((meaning & MEANING.reading) === 0) return;
    const level = (meaning & MEANING.workingPlace) === 0 ? CONTEXT.documentation : CONTEXT.reading;
    if (level > this.#level) this.#level = level;
  }

  /** Reads the last of `count` segments, now that it is known to be the last: as a program's name, beside the site's own name, and next to a key. */
  #readEnd(segments: PathSegments, count: number): void {
    const { path, starts, ends, bits } = segments;
    const last = count - 1;
    const lists = listsAt(segments, last);
    this.#lastStart = starts[last]!;
    this.#lastEnd = ends[last]!;
    this.#lastContext = this.#contexts[last]!;
    if (!this.#isKnownName(segments, last)) {
      const stop = innerStop(segments, last);
      this.#readProgram(segments, stop, last);
      this.#markTakenApart(this.#listsBesideOwnName(segments, last, stop), ANY | LAST, 0);
    }
    if (last > 0 && lists.length > 0) this.#markAfterKey(segments, last);
    // Every key has a digit or an `@`.
    const mayBeKey = count > 1 && (bits[last]! & (SEGMENT_HAS.digit | SEGMENT_HAS.at)) !== 0;
    if (mayBeKey && isKey(path, this.#lastStart, this.#lastEnd)) this.#markBeforeKey(segments, last);
  }

  /** Marks the last segment if a number or a key comes right before it. */
  #markAfterKey(segments: PathSegments, last: number): void {
    const { path, starts, ends, bits } = segments;
    const mayBeKey = (bits[last - 1]! & SEGMENT_HAS.digit) !== 0 && isAnyIn(listsAt(segments, last), this.#wanted);
    if (mayBeKey && isNumberOrKey(path, starts[last - 1]!, ends[last - 1]!)) this.#mark(segments, last, 0, AFTER_ID);
  }

  /** Whether a segment counts as the first one. After a language it does, except where documentation in that language may be. */
  #isFirst({ path, starts }: PathSegments, at: number): boolean {
    if (at === 0) return true;
    if (this.#contexts[at]! >= CONTEXT.documentation) return false;
    if (this.#firstStart === UNKNOWN) this.#firstStart = afterLanguage(path);
    return starts[at] === this.#firstStart;
  }

  /** Returns how many segments at the start of the path are a language. */
  #languageCount({ path, starts }: PathSegments): number {
    if (this.#firstStart === UNKNOWN) this.#firstStart = afterLanguage(path);
    let count = 0;
    while (starts[count]! < this.#firstStart) count++;
    return count;
  }

  /** Marks segments before the key at index `last`: the one right before it, and the one before those that name the key or its owner. */
  #markBeforeKey(segments: PathSegments, last: number): void {
    const { path, starts, ends } = segments;
    this.#mark(segments, last - 1, 0, BEFORE_ID);
    const first = Math.max(0, last - LOOKBACK_MAX);
    let before = last - 1;
    for (; before >= first; before--) {
      const lists = listsAt(segments, before);
      if (this.#placeWords.means(lists, MEANING.keyName)) continue;
      if (lists.length > 0 || !isKeyOrOwner(path, starts[before]!, ends[before]!)) break;
    }
    if (before >= first) this.#mark(segments, before, 0, BEFORE_ID);
  }

  /** Whether a name is not taken apart: a licensee's own words do not count, so that they hide nothing that the shipped lists would find. */
  #isKnownName(segments: PathSegments, at: number): boolean {
    return isAnyIn(listsAt(segments, at), this.#tokens.shipped);
  }

  /** Returns the lists of what is beside the site's own name in the segment at index `at`, whose name ends at `stop`. */
  #listsBesideOwnName({ path, starts }: PathSegments, at: number, stop: number): readonly number[] {
    const rest = withoutSiteName(path, starts[at]!, stop, this.#host, this.#hosts);
    if (rest === undefined) return NO_LISTS;
    return this.#tokens.find(rest, 0, rest.length).flatMap((list) => this.#ownNameLists.get(list) ?? []);
  }

  /** Reads the last segment as a program's name. */
  #readProgram(segments: PathSegments, stop: number, last: number): void {
    const name = this.#programs.read(segments.path, this.#lastStart, stop, this.#lastEnd);
    if (name === undefined) return;
    const isFirst = this.#isFirst(segments, last);
    this.#markTakenApart(name.lists, isFirst ? ANY | FIRST | LAST : ANY | LAST, 0);
    this.#markTakenApart(name.parts, 0, PART);
  }

  /** Marks lists that only splitting the last segment has revealed. Its context is computed again: before, no rule seemed to use its words. */
  #markTakenApart(lists: readonly number[], first: number, second: number): void {
    if (lists.length === 0) return;
    this.#lastContext = Math.max(this.#lastContext, this.#contextAt(this.#lastStart, -1, false, true, false));
    this.met.mark(lists, first << this.#lastContext, second << this.#lastContext);
  }

  /**
   * Marks the segment at index `at`, in its own context.
   * @param isLast whether it counts as the last one
   * @param isEnd whether nothing follows it, so that it may be the only one
   */
  #markSegment(segments: PathSegments, at: number, isLast: boolean, isEnd: boolean): void {
    const isFirst = this.#isFirst(segments, at);
    this.#mark(segments, at, ANY | (isFirst ? FIRST : 0) | (isLast ? LAST : 0), isFirst && isEnd ? ONLY : 0);
  }

  /** Marks the lists of the segment at index `at`, in its own context, at positions of the two tables. */
  #mark(segments: PathSegments, at: number, first: number, second: number): void {
    const context = this.#contexts[at]!;
    this.met.mark(listsAt(segments, at), first << context, second << context);
  }
}

/** Returns where the name of a segment ends that is taken apart: without trailing punctuation, unless an extension follows. */
function innerStop({ path, starts, stops }: PathSegments, at: number): number {
  const stop = stops[at]!;
  const hasExtension = stop < path.length && path.charCodeAt(stop) === DOT;
  return hasExtension ? stop : lastLetterEnd(path, starts[at]!, stop);
}

/** Returns the token lists of a segment; a person's name has none. */
function listsAt({ path, starts, lists }: PathSegments, at: number): readonly number[] {
  return isHandleAt(path, starts[at]!) ? NO_LISTS : lists[at]!;
}

/** Whether the segment is a person's name: after `@`, or after `~` as a user's folder. Two `@` open a view of a page (`@@login`). */
function isHandleAt(path: string, start: number): boolean {
  const code = path.charCodeAt(start);
  return code === 0x7e || (code === 0x40 && path.charCodeAt(start + 1) !== 0x40);
}
