/** What a path says as a whole of the folders in it: that a text ends it, that documentation stands in it, that a folder is named after one. */
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { isSentence, wordEnd } from '../url/segments.ts';
import { MEANING, type PlaceWords } from './place-words.ts';
import { isAnyIn, NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';

/** A program's own extension within a path: what follows it is no page of its own. */
const PROGRAM_WITHIN = /\.(?:php[0-9]?|aspx?|jspx?|do|action|cgi|cfm|pl)\//i;
const UNKNOWN = -1;
const PLACE = MEANING.placeWord | MEANING.dictionaryWord;

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
  #dictionaryEnd = Number.POSITIVE_INFINITY;

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
    if (this.#placeEnd === UNKNOWN) this.#findPlaces(this.#segments);
    return this.#placeEnd;
  }

  /** Where the first folder ends that is a dictionary (`glossary`, `hosting-glossary`), and of nothing but entries; infinite where none is. */
  get dictionaryEnd(): number {
    if (this.#placeEnd === UNKNOWN) this.#findPlaces(this.#segments);
    return this.#dictionaryEnd;
  }

  get hasDictionary(): boolean {
    return this.dictionaryEnd < Number.POSITIVE_INFINITY;
  }

  /** Whether the segment `at` is an entry of a dictionary: right below it, and nothing behind. A site that lies in the folder has more below. */
  isEntry(at: number): boolean {
    const { count, ends } = this.#segments;
    return at > 0 && at === count - 1 && ends[at - 1] === this.dictionaryEnd;
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
      // A word for an act or an interface with more behind it is no entry: a program that is called so lies there (`/terminology/api/token`).
      if ((meaning & MEANING.dictionaryWord) !== 0 && dictionary < 0) dictionary = at;
    }
    if (dictionary < 0) return;
    for (let at = dictionary + 1; at < count - 1; at++) if (isAnyIn(lists[at]!, this.#acts)) return;
    this.#dictionaryEnd = ends[dictionary]!;
  }

  /**
   * What several words say where the first or the last of them is one for such a place, and none is one for an act; or where the last of three
   * is one for a text that explains them. 0 where they name none.
   */
  #placeNamed(path: string, start: number, end: number): number {
    let words = 0;
    let place = 0;
    let hasAct = false;
    let lists = NO_LISTS;
    for (let from = start; from < end; ) {
      const to = wordEnd(path, from, end);
      if (to < 0) return 0;
      lists = this.#tokens.find(path, from, to);
      const said = this.#placeWords.meaningOf(lists) & PLACE;
      hasAct ||= said === 0 && isAnyIn(lists, this.#acts);
      if (words === 0 || to === end) place |= said;
      words++;
      from = to + 1;
    }
    if (words > 1 && !hasAct && place !== 0) return place;
    return words > 2 && this.#placeWords.means(lists, MEANING.guideWord) ? MEANING.placeWord : 0;
  }

  /** Where the last segment begins that is a sentence; 0 where none is. */
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
