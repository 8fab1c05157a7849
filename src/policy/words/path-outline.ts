/** The outline of a path: whether a text ends it, whether it has documentation in it, and whether a folder is named after reading matter. */
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { isSentence, wordEnd } from '../url/segments.ts';
import { MEANING, type PlaceWords } from './place-words.ts';
import { isAnyIn, NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';

/** The extension of a program in the middle of a path. What follows it is not a page of its own. */
const PROGRAM_WITHIN = /\.(?:php[0-9]?|aspx?|jspx?|do|action|cgi|cfm|pl)\//i;
const UNKNOWN = -1;
const PLACE = MEANING.placeWord | MEANING.dictionaryWord;

/** The outline of one path at a time. Each part is computed on first use, because most paths have no word that depends on it. */
export class PathOutline {
  readonly #tokens: TokenIndex;
  readonly #placeWords: PlaceWords;
  /** For each token list, 1 if it is a list of acts rather than of pages for everybody. */
  readonly #acts: Uint8Array;
  #path = '';
  #textStart = UNKNOWN;
  #documentationStart = UNKNOWN;
  #placeEnd = UNKNOWN;
  #dictionaryEnd = Number.POSITIVE_INFINITY;

  constructor(tokens: TokenIndex, placeWords: PlaceWords, acts: Uint8Array) {
    this.#tokens = tokens;
    this.#placeWords = placeWords;
    this.#acts = acts;
  }

  /** Sets the path that all later calls are about. */
  begin(path: string): void {
    this.#path = path;
    this.#textStart = UNKNOWN;
    this.#documentationStart = UNKNOWN;
    this.#placeEnd = UNKNOWN;
  }

  /** Offset of the text that the path leads to: words before it are topics. 0 if it leads to none. */
  get textStart(): number {
    if (this.#textStart === UNKNOWN) this.#textStart = this.#findText(this.#segments);
    return this.#textStart;
  }

  /** Offset of the last segment that opens documentation (`docs`): those before it say what that is about. 0 if there is none. */
  get documentationStart(): number {
    if (this.#documentationStart === UNKNOWN) this.#documentationStart = this.#findDocumentation(this.#segments);
    return this.#documentationStart;
  }

  /** End offset of the first folder that is named after a place for reading matter (`service-hilfe`); infinite if there is none. */
  get placeEnd(): number {
    if (this.#placeEnd === UNKNOWN) this.#findPlaces(this.#segments);
    return this.#placeEnd;
  }

  /** End offset of the first folder that is a dictionary (`hosting-glossary`) and holds only entries; infinite if there is none. */
  get dictionaryEnd(): number {
    if (this.#placeEnd === UNKNOWN) this.#findPlaces(this.#segments);
    return this.#dictionaryEnd;
  }

  get hasDictionary(): boolean {
    return this.dictionaryEnd < Number.POSITIVE_INFINITY;
  }

  /** Whether the segment at index `at` is an entry of a dictionary: right below it, and the last one. A site in that folder has more segments. */
  isEntry(at: number): boolean {
    const { count, ends } = this.#segments;
    return at > 0 && at === count - 1 && ends[at - 1] === this.dictionaryEnd;
  }

  get #segments(): PathSegments {
    return this.#tokens.segments(this.#path);
  }

  /** Finds the text that a path leads to: a sentence, or the last segment if its name is one for a text. */
  #findText(segments: PathSegments): number {
    const { path, count, starts, stops, lists } = segments;
    if (count === 0) return 0;
    const last = count - 1;
    const isText =
      lists[last]!.length > 0
        ? this.#placeWords.means(lists[last]!, MEANING.textPage)
        : this.#placeNamed(path, starts[last]!, stops[last]!) !== 0 || this.#isTextFile(segments);
    if (lists[last]!.length > 0 && !isText) return 0;
    const text = isText ? starts[last]! : this.#lastSentence(segments);
    if (text === 0) return 0;
    return PROGRAM_WITHIN.test(path.slice(0, segments.end)) ? 0 : text;
  }

  /** Whether the last segment is a file that sites have for programs (`robots.txt`). */
  #isTextFile(segments: PathSegments): boolean {
    const last = segments.allCount - 1;
    const isFile = segments.dots[last]! > segments.starts[last]!;
    return isFile && this.#placeWords.means(segments.listsOfLastFile(), MEANING.textPage);
  }

  #findDocumentation(segments: PathSegments): number {
    const { count, starts, lists } = segments;
    let at = count - 2;
    while (at > 0 && !this.#placeWords.means(lists[at]!, MEANING.documentationPlace)) at--;
    return at > 0 ? starts[at]! : 0;
  }

  #findPlaces({ path, count, starts, stops, ends, bits, lists }: PathSegments): void {
    this.#placeEnd = Number.POSITIVE_INFINITY;
    this.#dictionaryEnd = Number.POSITIVE_INFINITY;
    let dictionary = -1;
    for (let at = 0; at < count; at++) {
      const end = ends[at]!;
      if (stops[at] !== end) continue;
      const isWhole = lists[at]!.length > 0;
      const hasWords = !isWhole && at < count - 1 && (bits[at]! & SEGMENT_HAS.separator) !== 0;
      const place = hasWords ? this.#placeNamed(path, starts[at]!, end) : 0;
      if (place !== 0) this.#placeEnd = Math.min(this.#placeEnd, end);
      const meaning = isWhole ? this.#placeWords.meaningOf(lists[at]!) : place;
      if ((meaning & MEANING.dictionaryWord) !== 0 && dictionary < 0) dictionary = at;
    }
    if (dictionary < 0) return;
    // A word for an act or an interface in between is not an entry: a program of that name is there (`/terminology/api/token`).
    for (let at = dictionary + 1; at < count - 1; at++) if (isAnyIn(lists[at]!, this.#acts)) return;
    this.#dictionaryEnd = ends[dictionary]!;
  }

  /**
   * Returns what a name of several words announces: what its first and last word mean as place words, if no word is one for an act; or a
   * place for reading matter, if the last of at least three words is one for a text that explains. Otherwise 0.
   */
  #placeNamed(path: string, start: number, end: number): number {
    let wordCount = 0;
    let place = 0;
    let hasAct = false;
    let lists = NO_LISTS;
    for (let from = start; from < end; ) {
      const to = wordEnd(path, from, end);
      if (to < 0) return 0;
      lists = this.#tokens.find(path, from, to);
      const meaning = this.#placeWords.meaningOf(lists) & PLACE;
      hasAct ||= meaning === 0 && isAnyIn(lists, this.#acts);
      if (wordCount === 0 || to === end) place |= meaning;
      wordCount++;
      from = to + 1;
    }
    if (wordCount > 1 && !hasAct && place !== 0) return place;
    return wordCount > 2 && this.#placeWords.means(lists, MEANING.guideWord) ? MEANING.placeWord : 0;
  }

  /** Returns the offset of the last segment that is a sentence; 0 if there is none. */
  #lastSentence({ path, count, starts, ends, bits }: PathSegments): number {
    const asks = (start: number, end: number): boolean =>
      this.#placeWords.means(this.#tokens.find(path, start, end), MEANING.question);
    for (let at = count - 1; at >= 0; at--) {
      if ((bits[at]! & SEGMENT_HAS.separator) !== 0 && isSentence(path, starts[at]!, ends[at]!, asks))
        return starts[at]!;
    }
    return 0;
  }
}
