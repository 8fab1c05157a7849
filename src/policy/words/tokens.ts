/**
 * Token lists, compiled: which lists a path segment, the name of a query parameter or a host label is in. Tokens are compared whole,
 * ignoring case, accents and separators. So `Sign-In`, `sign_in` and `signIn` are one token, and `login-tips` is not the token `login`.
 * Finding the lists takes one pass over the text and one search in a hash table, whatever the text is.
 */
import { HASH_PRIME, HASH_SEED } from '../../bytes/fnv.ts';
import { PagegateError } from '../../errors.ts';
import { didYouMean } from '../../json/did-you-mean.ts';
import type { Steps } from '../../steps.ts';
import type { TokenList } from '../documents.ts';
import { FOLD } from '../url/characters.ts';
import { PathSegments } from '../url/path-segments.ts';
import { staticDot } from '../url/segments.ts';
import { NO_LISTS, TokenTable } from './token-table.ts';

/** No phrase is longer, so no longer text is looked up. */
export const TOKEN_MAX_LENGTH = 96;

const ASCII = /^\p{ASCII}*$/u;

/** Returns a text in the form in which tokens are compared. A leading dot or underscore is kept, because it marks special files and fields. */
export function tokenOf(text: string): string {
  const isAscii = ASCII.test(text);
  const folded = isAscii ? text.toLowerCase() : text.normalize('NFKD').toLowerCase();
  const lead = folded[0] === '.' || folded[0] === '_' ? folded[0] : '';
  // A shortcut with the same result for most phrases, in a third of the time. A policy has tens of thousands.
  if (isAscii) return lead + folded.replace(/[^a-z0-9]+/g, '');
  return lead + folded.replace(/[^\p{L}\p{N}]/gu, '');
}

/** Form of the tokens in the table. Other tokens have a leading dot or underscore, or letters beyond ASCII. */
const PLAIN_TOKEN = /^[a-z0-9]+$/;
const isPlainPart = (text: string): boolean => text === '' || PLAIN_TOKEN.test(text);

/** All token lists of a policy, compiled. */
export class TokenIndex {
  /** Names of the lists. The index of a name is the list's ordinal, as {@link find} returns it. */
  readonly names: readonly string[];
  /** For each list, 1 if it is shipped, 0 if a licensee added it. */
  readonly shipped: Uint8Array;
  readonly #ordinals: ReadonlyMap<string, number>;
  /** Tokens that are not in the table. */
  readonly #odd: ReadonlyMap<string, readonly number[]>;
  readonly #plain: TokenTable;
  readonly #segments: PathSegments;

  private constructor(
    names: readonly string[],
    shipped: Uint8Array,
    odd: ReadonlyMap<string, readonly number[]>,
    plain: TokenTable,
  ) {
    this.names = names;
    this.shipped = shipped;
    this.#ordinals = new Map(names.map((name, ordinal) => [name, ordinal]));
    this.#odd = odd;
    this.#plain = plain;
    this.#segments = new PathSegments(this, names.indexOf('index'));
  }

  /** Compiles the lists, with a step for each list. */
  static *compile(lists: Readonly<Record<string, TokenList>>): Steps<TokenIndex> {
    const names = Object.keys(lists);
    const odd = new Map<string, readonly number[]>();
    const plain = new TokenTable(Object.values(lists).reduce((sum, list) => sum + phraseCount(list), 0));
    for (const [ordinal, name] of names.entries()) {
      // All tokens that are in the same lists share one array. Maps each array to the one that also has this list.
      const extended = new Map<readonly number[], readonly number[]>();
      const withList = (before: readonly number[]): readonly number[] => {
        if (before.at(-1) === ordinal) return before;
        const after = extended.get(before) ?? [...before, ordinal];
        extended.set(before, after);
        return after;
      };
      const add = (first: string, then: string, isPlain: boolean): void => {
        if (isPlain && first.length + then.length > 0) plain.add(first, then, withList);
        else odd.set(first + then, withList(odd.get(first + then) ?? NO_LISTS));
      };
      const { phrases, compounds = [] } = lists[name]!;
      for (const token of Object.values(phrases).flat().map(tokenOf)) add(token, '', isPlainPart(token));
      for (const { first, then } of compounds) {
        // The leading blank removes a dot or underscore, which marks a token only at its start.
        const ends = then.map((text) => tokenOf(` ${text}`)).map((end) => ({ end, isPlain: isPlainPart(end) }));
        for (const start of first.map(tokenOf)) {
          const isPlain = isPlainPart(start);
          for (const one of ends) add(start, one.end, isPlain && one.isPlain);
        }
      }
      yield;
    }
    const shipped = Uint8Array.from(names, (name) => (lists[name]!.added ? 0 : 1));
    return new TokenIndex(names, shipped, odd, plain);
  }

  /**
   * Returns the ordinal of a list.
   * @throws PagegateError policy_invalid, if there is no such list
   */
  ordinal(name: string): number {
    const ordinal = this.#ordinals.get(name);
    if (ordinal !== undefined) return ordinal;
    throw new PagegateError('policy_invalid', `There is no token list "${name}"${didYouMean(name, this.names)}.`, {
      got: name,
    });
  }

  /** Returns the lists that have the token between `start` and `end`. */
  find(text: string, start: number, end: number): readonly number[] {
    if (end - start > TOKEN_MAX_LENGTH || end <= start) return NO_LISTS;
    const first = text.charCodeAt(start);
    if (first === 0x2e || first === 0x5f) return this.#findLed(text.slice(start, end));
    let hash = HASH_SEED;
    for (let at = start; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code > 127) return this.#known(tokenOf(text.slice(start, end))) ?? NO_LISTS;
      const folded = FOLD[code]!;
      if (folded !== 0) hash = Math.imul(hash ^ folded, HASH_PRIME);
    }
    return this.#plain.find(hash, text, start, end);
  }

  /**
   * Like {@link find}, for a name without its extension. A file of another kind than a page is in no list, unless it begins with a dot or
   * underscore (`.env.example`). Then the whole name is looked up, or else its part before the next dot.
   */
  findName(text: string, start: number, end: number): readonly number[] {
    if (staticDot(text, start + 1, end) < 0) return this.find(text, start, end);
    const first = text.charCodeAt(start);
    if (first !== 0x2e && first !== 0x5f) return NO_LISTS;
    const name = text.slice(start, end);
    return this.#known(tokenOf(name)) ?? this.#known(tokenOf(name.slice(0, name.indexOf('.', 1)))) ?? NO_LISTS;
  }

  /** Like {@link find}, if there is only ASCII, no leading dot or underscore, and the hash is known. */
  findHashed(hash: number, text: string, start: number, end: number): readonly number[] {
    return end - start > TOKEN_MAX_LENGTH ? NO_LISTS : this.#plain.find(hash, text, start, end);
  }

  /** Splits a path. The result is valid until another path is split. */
  segments(path: string): PathSegments {
    return this.#segments.read(path);
  }

  /** Returns the lists of a token with a leading dot or underscore: tries it as it is, then up to its next dot, then without the lead. */
  #findLed(text: string): readonly number[] {
    const dot = text.indexOf('.', 1);
    return (
      this.#known(tokenOf(text)) ??
      (dot > 0 ? this.#known(tokenOf(text.slice(0, dot))) : undefined) ??
      this.#known(tokenOf(text.replace(/^[._]+/, ''))) ??
      NO_LISTS
    );
  }

  /** Yields every token with its lists, for reports. */
  *entries(): IterableIterator<{ token: string; lists: readonly number[] }> {
    for (const [token, lists] of this.#plain.entries()) yield { token, lists };
    for (const [token, lists] of this.#odd) yield { token, lists };
  }

  /** Returns the tokens of a list. */
  tokensIn(ordinal: number): string[] {
    const isIn = (lists: readonly number[]): boolean => lists.includes(ordinal);
    return [
      ...this.#plain.tokensWhere(isIn),
      ...[...this.#odd].flatMap(([token, lists]) => (isIn(lists) ? token : [])),
    ];
  }

  /** Returns the lists of a whole token; undefined if it is in no list. */
  #known(token: string): readonly number[] | undefined {
    if (!PLAIN_TOKEN.test(token)) return this.#odd.get(token);
    const lists = this.#plain.findToken(token);
    return lists.length === 0 ? undefined : lists;
  }
}

/** Returns how many phrases a list has. A phrase that is in it twice counts twice. */
function phraseCount({ phrases, compounds = [] }: TokenList): number {
  const written = Object.values(phrases).reduce((sum, some) => sum + some.length, 0);
  return compounds.reduce((sum, { first, then }) => sum + first.length * then.length, written);
}
