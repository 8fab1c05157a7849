/**
 * Names of programs in a path: `UserLogonView`, `Cart-Show`, `kohls_login.jsp`, `deleteItem.do`. Case is ignored, as on many servers. So
 * words that are written together are recognized by how the name begins and ends.
 */
import { ALPHANUMERIC, ExtensionSet, runEnd, tableOf } from '../url/characters.ts';
import { lastLetterEnd, nameStop, staticDot } from '../url/segments.ts';
import type { TokenIndex } from './tokens.ts';

/** Extensions of programs that a server runs, as opposed to written pages. */
const PROGRAM_EXTENSIONS = new ExtensionSet(
  'action asp aspx ashx asmx bhtml bml cfm cgi do dll esp exe faces fcc form go htmld jhtml jsf jsp jspa jspx momo mvc naver nhn nsf ' +
    'page pang php php3 php4 php5 phtml pl py sdo seam srf svc tmall xhtml',
);

/** Extensions of written pages. A short name can still be that of a program (`displayLoginForm.htm`); a title has more words. */
const PAGE_EXTENSIONS = new ExtensionSet('htm html');

/** Token lists of the words in such names, as the policy names them. */
const LISTS = {
  before: 'program_before',
  after: 'program_after',
  verb: 'program_verb',
  object: 'program_object',
  /** Words that decide what a name is for if they end it, whatever comes before them. */
  tail: 'program_tail',
} as const;

const IN_ACT_NAME = tableOf(`${ALPHANUMERIC}_-`);
const NAME_MAX_LENGTH = 64;
/** A name without a program's extension has at most this many words; prose has more. A single letter is not a word. */
const NON_PROGRAM_WORDS_MAX = 2;
/** Shorter words also end unrelated ones (`cart`, `descartes`). */
const LAST_WORD_MIN_LENGTH = 5;
const CORE_MIN_LENGTH = 3;
/** Maximum number of ways to strip one name; a name usually has a few. */
const CORES_MAX = 24;

export interface ProgramName {
  /** Token lists of the name after words without a meaning of their own are stripped (`get`, `view`). */
  readonly lists: readonly number[];
  /** Token lists of its first and of its last word. */
  readonly parts: readonly number[];
}

/** Splits the name of a program, and finds the token lists of its words. */
export class ProgramNames {
  readonly #tokens: TokenIndex;
  readonly #verb: number;
  readonly #object: number;
  /** Verbs of at least {@link CORE_MIN_LENGTH} letters, by their first letter. */
  readonly #verbs: ReadonlyMap<number, readonly string[]>;
  /** The same verbs, by their last letter. */
  readonly #lastVerbs: ReadonlyMap<number, readonly string[]>;
  /** Words without a meaning of their own at the start of a name, by their first letter. */
  readonly #prefixes: ReadonlyMap<number, readonly string[]>;
  /** The same at the end of a name, by their last letter. */
  readonly #suffixes: ReadonlyMap<number, readonly string[]>;
  /** Words that decide by themselves at the end of a name, by their last letter. */
  readonly #tails: ReadonlyMap<number, readonly string[]>;
  readonly #edges: Edges;
  readonly #tailEdges: Edges;
  readonly #verbEdges: Edges;

  /** @throws PagegateError policy_invalid, if a list is missing */
  constructor(tokens: TokenIndex) {
    this.#tokens = tokens;
    this.#verb = tokens.ordinal(LISTS.verb);
    this.#object = tokens.ordinal(LISTS.object);
    const wordsOf = (name: string): string[] => tokens.tokensIn(tokens.ordinal(name));
    const verbs = wordsOf(LISTS.verb).filter(({ length }) => length >= CORE_MIN_LENGTH);
    this.#verbs = byLetter(verbs, 0);
    this.#lastVerbs = byLetter(verbs, -1);
    this.#prefixes = byLetter(wordsOf(LISTS.before), 0);
    this.#suffixes = byLetter(wordsOf(LISTS.after), -1);
    this.#tails = byLetter(wordsOf(LISTS.tail), -1);
    this.#edges = new Edges(
      [...this.#verbs.values(), ...this.#prefixes.values()].flat(),
      [...this.#suffixes.values()].flat(),
    );
    this.#verbEdges = new Edges(verbs, verbs);
    this.#tailEdges = new Edges([], [...this.#tails.values(), ...this.#lastVerbs.values()].flat());
  }

  /**
   * Reads the name from `start` to `stop` of the segment that ends at `end`. Undefined if it cannot be the name of a program.
   * @param isAct whether it is the name of a program, whatever its extension
   */
  read(path: string, start: number, stop: number, end: number, isAct = false): ProgramName | undefined {
    if (stop - start > NAME_MAX_LENGTH || staticDot(path, start, stop) >= 0) return undefined;
    let isProgram = isAct;
    if (stop < path.length && path.charCodeAt(stop) === 0x2e) {
      const extension = lastLetterEnd(path, stop + 1, nameStop(path, stop + 1, end));
      isProgram = PROGRAM_EXTENSIONS.has(path, stop + 1, extension);
      const isPage = PAGE_EXTENSIONS.has(path, stop + 1, extension);
      if (extension > stop + 1 && !isProgram && !isPage) return undefined;
    }
    if (!isProgram && !this.#mayMatch(path, start, stop)) return undefined;
    const text = path.slice(start, stop).toLowerCase();
    const isSingle = isOneWord(path, start, stop);
    // The name of a program has no characters that may end a name.
    if (!isSingle && /[?#&!]/.test(text)) return undefined;
    const name = isSingle ? text : text.replace(/[^a-z]+/g, '');
    // Not the same as `isSingle`: the lower case of the Kelvin sign is a `k`.
    const isWhole = name === text;
    if (name === '' || (!isProgram && !isWhole && name.length <= CORE_MIN_LENGTH)) return undefined;
    const parts: number[] = [];
    this.#addVerb(name, isProgram || isWhole, parts);
    if (isProgram) {
      const words = isSingle ? [name] : text.match(/[a-z]+/g)!;
      this.#add(words[0]!, parts);
      if (words.length > 1) this.#add(words.at(-1)!, parts);
      for (let at = 1; at <= name.length - LAST_WORD_MIN_LENGTH; at++) this.#addFrom(name, at, parts);
    } else if (isWhole) this.#addTail(name, parts);
    return { lists: this.#listsOfCores(name), parts };
  }

  /** Reads a value that names an act as the name of a program: `deleteItem`. Whatever follows the name is ignored. */
  readAct(value: string): ProgramName | undefined {
    const text = value.slice(0, runEnd(value, IN_ACT_NAME, 0));
    return this.read(text, 0, text.length, text.length, true);
  }

  /** Whether a name without a program's extension may have words of the lists. Checked before the name is copied. */
  #mayMatch(path: string, start: number, stop: number): boolean {
    if (hasMoreWords(path, start, stop)) return false;
    if (this.#edges.mayMatch(path, start, stop)) return true;
    return this.#tailEdges.mayMatch(path, start, stop) && isOneWord(path, start, stop);
  }

  /** Returns the lists of what is left of a name after stripping words without a meaning of their own, in every combination. */
  #listsOfCores(name: string): number[] {
    const lists: number[] = [];
    if (!this.#edges.mayMatch(name, 0, name.length)) return lists;
    const cores = [name];
    for (let at = 0; at < cores.length && cores.length < CORES_MAX; at++) {
      const core = cores[at]!;
      for (const word of this.#prefixes.get(core.charCodeAt(0)) ?? [])
        if (core.startsWith(word)) cores.push(core.slice(word.length));
      for (const word of this.#suffixes.get(core.charCodeAt(core.length - 1)) ?? [])
        if (core.endsWith(word)) cores.push(core.slice(0, -word.length));
    }
    for (const core of cores) if (core.length >= CORE_MIN_LENGTH && core !== name) this.#add(core, lists);
    return lists;
  }

  /**
   * Adds the list of verbs if a verb comes before its object (`deleteitem`) or, with `mayEnd`, after it (`itemdelete`). As the second of
   * two separate words it is a noun.
   */
  #addVerb(name: string, mayEnd: boolean, to: number[]): void {
    const { length } = name;
    if (!this.#verbEdges.mayMatch(name, 0, length)) return;
    const isObject = (start: number, end: number): boolean =>
      end - start >= CORE_MIN_LENGTH && this.#tokens.find(name, start, end).includes(this.#object);
    const isCommand =
      this.#verbs.get(name.charCodeAt(0))?.some((verb) => name.startsWith(verb) && isObject(verb.length, length)) ||
      (mayEnd &&
        this.#lastVerbs
          .get(name.charCodeAt(length - 1))
          ?.some((verb) => name.endsWith(verb) && isObject(0, length - verb.length)));
    if (isCommand) addOnce(to, this.#verb);
  }

  /** Adds the lists of a word that decides by itself at the end of a name: `shibbolethLogin`. */
  #addTail(name: string, to: number[]): void {
    for (const word of this.#tails.get(name.charCodeAt(name.length - 1)) ?? [])
      if (name.length > word.length && name.endsWith(word)) this.#add(word, to);
  }

  #add(text: string, to: number[]): void {
    for (const list of this.#tokens.find(text, 0, text.length)) addOnce(to, list);
  }

  /** Adds the lists of what is left of a name from an offset on, except that of verbs. */
  #addFrom(name: string, start: number, to: number[]): void {
    for (const list of this.#tokens.find(name, start, name.length)) if (list !== this.#verb) addOnce(to, list);
  }
}

function addOnce(to: number[], list: number): void {
  if (!to.includes(list)) to.push(list);
}

/** How words begin and end. Three letters are enough to rule out most names. */
class Edges {
  /** For each pair of first letters, as a number, a bit mask of the third ones. */
  readonly #starts = new Uint32Array(32 * 32);
  /** The same from the end. */
  readonly #ends = new Uint32Array(32 * 32);

  constructor(first: readonly string[], last: readonly string[]) {
    for (const word of first) mark(this.#starts, word);
    for (const word of last) mark(this.#ends, [...word].reverse().join(''));
  }

  /** Whether a word may begin or end the text between `start` and `stop`. */
  mayMatch(text: string, start: number, stop: number): boolean {
    return isMarked(this.#starts, text, start, stop, 1) || isMarked(this.#ends, text, stop - 1, start - 1, -1);
  }
}

/** Marks the first three letters of a word. If it has fewer, marks them with whatever may follow. */
function mark(table: Uint32Array, word: string): void {
  const [first, second, third] = [0, 1, 2].map((at) => letterOf(word.charCodeAt(at))) as [number, number, number];
  const thirds = word.length < 3 ? -1 : 1 << third;
  if (word.length > 1) table[first * 32 + second]! |= thirds;
  else for (let any = 0; any < 32; any++) table[first * 32 + any]! |= thirds;
}

/** Whether the first three letters from `start` to `stop`, in steps of `step`, are marked. Other characters are skipped. */
function isMarked(table: Uint32Array, text: string, start: number, stop: number, step: 1 | -1): boolean {
  let letters = 0;
  let found = 0;
  for (let at = start; at !== stop && found < 3; at += step) {
    const letter = letterOf(text.charCodeAt(at));
    if (letter === 0) continue;
    letters = letters * 32 + letter;
    found++;
  }
  for (; found < 3; found++) letters *= 32;
  return ((table[letters >> 5]! >>> (letters & 31)) & 1) === 1;
}

/**
 * Returns 1 to 26 for a letter, otherwise 0. The two characters beyond ASCII whose lower case is an ASCII letter count as 0: no name is
 * worth a closer look because of them.
 */
function letterOf(code: number): number {
  const lower = code | 0x20;
  return code < 0x80 && lower >= 0x61 && lower <= 0x7a ? lower - 0x60 : 0;
}

/** Whether the text between two offsets has nothing but letters. */
function isOneWord(path: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (letterOf(path.charCodeAt(at)) === 0) return false;
  return true;
}

/** Whether a name has more than {@link NON_PROGRAM_WORDS_MAX} words. A word has at least two letters. */
function hasMoreWords(path: string, start: number, end: number): boolean {
  let words = 0;
  let letters = 0;
  for (let at = start; at < end; at++) {
    letters = letterOf(path.charCodeAt(at)) > 0 ? letters + 1 : 0;
    if (letters === 2) words++;
  }
  return words > NON_PROGRAM_WORDS_MAX;
}

/** Groups words by their first letter (`at` is 0) or by their last one (-1). */
function byLetter(words: readonly string[], at: 0 | -1): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  for (const word of words) {
    const code = word.charCodeAt(at === 0 ? 0 : word.length - 1);
    groups.set(code, [...(groups.get(code) ?? []), word]);
  }
  return groups;
}
