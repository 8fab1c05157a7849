/** What a path says as a whole of the folders in it: that a text ends it, that documentation stands in it, that a folder is named after one. */
import { type PathSegments, SIGN } from '../url/path-segments.ts';
import { isSentence, wordEnd } from '../url/segments.ts';
import { type PlaceWords, SAYS } from './place-words.ts';
import { isAnyIn, NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';

/** A program's own extension within a path: what follows it is no page of its own. */
const PROGRAM_WITHIN = /\.(?:php[0-9]?|aspx?|jspx?|do|action|cgi|cfm|pl)\//i;
const UNKNOWN = -1;

/** The outline of one path at a time, each part worked out when it is asked for: most paths have no word that it would matter to. */
export class PathOutline {
  readonly #tokens: TokenIndex;
  readonly #placeWords: PlaceWords;
  /** For each token list whether it is one of acts, and not of pages for everybody. */
  readonly #acts: Uint8Array;
  #path = '';
  #textStart = UNKNOWN;
  #documentationStart = UNKNOWN;
  #placeEnd = UNKNOWN;

  constructor(tokens: TokenIndex, placeWords: PlaceWords, acts: Uint8Array) {
    this.#tokens = tokens;
    this.#placeWords = placeWords;
    this.#acts = acts;
  }

  /** The path that is asked about from here on. */
  begin(path: string): void {
    this.#path = path;
    this.#textStart = UNKNOWN;
    this.#documentationStart = UNKNOWN;
    this.#placeEnd = UNKNOWN;
  }

  /** Where the text begins that the path leads to: words before it are topics. 0 where it leads to none. */
  get textStart(): number {
    if (this.#textStart === UNKNOWN) this.#textStart = this.#findText(this.#segments);
    return this.#textStart;
  }

  /** Where the last segment begins that documentation stands below: what is before says what that is about. 0 where there is none. */
  get documentationStart(): number {
    if (this.#documentationStart === UNKNOWN) this.#documentationStart = this.#findDocumentation(this.#segments);
    return this.#documentationStart;
  }

  /** Where the first folder ends that is named after a place for reading matter (`service-hilfe`); infinite where none is. */
  get placeEnd(): number {
    if (this.#placeEnd === UNKNOWN) this.#placeEnd = this.#findPlace(this.#segments);
    return this.#placeEnd;
  }

  get #segments(): PathSegments {
    return this.#tokens.segments(this.#path);
  }

  /** A text is a sentence, or the last segment where it says that a text is there. */
  #findText(segments: PathSegments): number {
    const { path, count, starts, stops, lists } = segments;
    if (count === 0) return 0;
    const last = count - 1;
    const isText =
      lists[last]!.length > 0
        ? this.#placeWords.isSaid(lists[last]!, SAYS.textPage)
        : this.#isPlaceName(path, starts[last]!, stops[last]!) || this.#isTextFile(segments);
    if (lists[last]!.length > 0 && !isText) return 0;
    const text = isText ? starts[last]! : this.#lastSentence(segments);
    return text > 0 && !PROGRAM_WITHIN.test(path) ? text : 0;
  }

  /** Whether the last segment is a file that sites have for programs (`robots.txt`), without a sign that some servers cut it at. */
  #isTextFile(segments: PathSegments): boolean {
    const last = segments.count - 1;
    const isFile = segments.dots[last]! > segments.starts[last]! && (segments.bits[last]! & SIGN.odd) === 0;
    return isFile && this.#placeWords.isSaid(segments.listsOfLastFile(), SAYS.textPage);
  }

  #findDocumentation({ count, starts, lists }: PathSegments): number {
    let at = count - 2;
    while (at > 0 && !this.#placeWords.isSaid(lists[at]!, SAYS.documentationPlace)) at--;
    return at > 0 ? starts[at]! : 0;
  }

  #findPlace({ path, count, starts, stops, ends, bits, lists }: PathSegments): number {
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
      const isPlaceWord = this.#placeWords.isSaid(lists, SAYS.placeWord);
      hasAct ||= !isPlaceWord && isAnyIn(lists, this.#acts);
      if (words === 0 || to === end) isPlace ||= isPlaceWord;
      words++;
      from = to + 1;
    }
    return (isPlace && !hasAct && words > 1) || (words > 2 && this.#placeWords.isSaid(lists, SAYS.guideWord));
  }

  /** Where the last segment begins that is a sentence; 0 where none is. */
  #lastSentence({ path, count, starts, ends, bits }: PathSegments): number {
    const asks = (start: number, end: number): boolean =>
      this.#placeWords.isSaid(this.#tokens.find(path, start, end), SAYS.question);
    for (let at = count - 1; at >= 0; at--) {
      if ((bits[at]! & SIGN.separator) !== 0 && isSentence(path, starts[at]!, ends[at]!, asks)) return starts[at]!;
    }
    return 0;
  }
}
