/**
 * Token lists, compiled: which lists a path segment, a query name or a host label is in. A token is compared whole, without case,
 * accents and separators, so that `Sign-In`, `sign_in` and `signIn` are one token, and `login-tips` is another than `login`. The
 * work is one pass over the text and one probe of a hash table, whatever the text holds.
 */
import { PagegateError } from '../../errors.ts';
import { didYouMean } from '../../json/did-you-mean.ts';
import type { Steps } from '../../steps.ts';
import { phrasesOf, type TokenList } from '../documents.ts';
import { FOLD, HASH_PRIME, HASH_SEED } from '../url/characters.ts';
import { PathSegments } from '../url/path-segments.ts';
import { staticDot } from '../url/segments.ts';
import { NO_LISTS, TokenTable } from './token-table.ts';

/** No phrase is longer, so nothing longer is looked up. */
export const TOKEN_MAX_LENGTH = 96;

const ASCII = /^\p{ASCII}*$/u;

/** A text as tokens are compared. A leading dot or underscore, which tells files and fields of their own kind, is kept. */
export function tokenOf(text: string): string {
  const isAscii = ASCII.test(text);
  const folded = isAscii ? text.toLowerCase() : text.normalize('NFKD').toLowerCase();
  const lead = folded[0] === '.' || folded[0] === '_' ? folded[0] : '';
  // The same for most phrases, at a third of the time: a policy has tens of thousands.
  if (isAscii) return lead + folded.replace(/[^a-z0-9]+/g, '');
  return lead + folded.replace(/[^\p{L}\p{N}]/gu, '');
}

/** What stands in the table; other tokens have a sign in front, or letters beyond ASCII. */
const PLAIN_TOKEN = /^[a-z0-9]+$/;

/** All token lists of a policy, as one. */
export class TokenIndex {
  /** Names of the lists; their positions are the ordinals that {@link find} answers. */
  readonly names: readonly string[];
  /** For each list whether it ships. */
  readonly shipped: Uint8Array;
  readonly #ordinals: ReadonlyMap<string, number>;
  readonly #byToken: ReadonlyMap<string, readonly number[]>;
  readonly #plain: TokenTable;
  readonly #segments: PathSegments;

  private constructor(
    names: readonly string[],
    shipped: Uint8Array,
    byToken: ReadonlyMap<string, readonly number[]>,
    plain: TokenTable,
  ) {
    this.names = names;
    this.shipped = shipped;
    this.#ordinals = new Map(names.map((name, ordinal) => [name, ordinal]));
    this.#byToken = byToken;
    this.#plain = plain;
    this.#segments = new PathSegments(this, names.indexOf('index'));
  }

  /** A step for each list. */
  static *compile(lists: Readonly<Record<string, TokenList>>): Steps<TokenIndex> {
    const names = Object.keys(lists);
    const byToken = new Map<string, readonly number[]>();
    for (const [ordinal, name] of names.entries()) {
      // One object for all tokens that are in the same lists: what each becomes with this list.
      const longer = new Map<readonly number[], readonly number[]>();
      for (const token of phrasesOf(lists[name]!, tokenOf)) {
        const before = byToken.get(token) ?? NO_LISTS;
        if (before.at(-1) === ordinal) continue;
        let after = longer.get(before);
        if (after === undefined) {
          after = [...before, ordinal];
          longer.set(before, after);
        }
        byToken.set(token, after);
      }
      yield;
    }
    const plain = [...byToken].filter(([token]) => PLAIN_TOKEN.test(token));
    yield;
    const shipped = Uint8Array.from(names, (name) => (lists[name]!.added ? 0 : 1));
    return new TokenIndex(names, shipped, byToken, new TokenTable(plain));
  }

  /** Ordinal of a list. @throws PagegateError policy_invalid */
  ordinal(name: string): number {
    const ordinal = this.#ordinals.get(name);
    if (ordinal !== undefined) return ordinal;
    throw new PagegateError('policy_invalid', `There is no token list "${name}"${didYouMean(name, this.names)}.`, {
      got: name,
    });
  }

  /** Lists that hold the token between `start` and `end`. */
  find(text: string, start: number, end: number): readonly number[] {
    if (end - start > TOKEN_MAX_LENGTH || end <= start) return NO_LISTS;
    const first = text.charCodeAt(start);
    if (first === 0x2e || first === 0x5f) return this.#findLed(text.slice(start, end));
    let hash = HASH_SEED;
    for (let at = start; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code > 127) return this.#byToken.get(tokenOf(text.slice(start, end))) ?? NO_LISTS;
      const folded = FOLD[code]!;
      if (folded !== 0) hash = Math.imul(hash ^ folded, HASH_PRIME);
    }
    return this.#plain.find(hash, text, start, end);
  }

  /**
   * The same of a name without its extension. That of a file of another kind than a page says nothing, unless a sign leads it
   * (`.env.example`): then all of it does, or what stands before the next dot.
   */
  findName(text: string, start: number, end: number): readonly number[] {
    if (staticDot(text, start + 1, end) < 0) return this.find(text, start, end);
    const first = text.charCodeAt(start);
    if (first !== 0x2e && first !== 0x5f) return NO_LISTS;
    const name = text.slice(start, end);
    return (
      this.#byToken.get(tokenOf(name)) ?? this.#byToken.get(tokenOf(name.slice(0, name.indexOf('.', 1)))) ?? NO_LISTS
    );
  }

  /** The same as {@link find}, where nothing but ASCII stands there, no sign leads it, and its hash is known. */
  findHashed(hash: number, text: string, start: number, end: number): readonly number[] {
    return end - start > TOKEN_MAX_LENGTH ? NO_LISTS : this.#plain.find(hash, text, start, end);
  }

  /** A path, taken apart. What is answered holds until another path is. */
  segments(path: string): PathSegments {
    return this.#segments.read(path);
  }

  /** A token with a leading dot or underscore: as it stands, up to its next dot, or without the lead. */
  #findLed(text: string): readonly number[] {
    const dot = text.indexOf('.', 1);
    return (
      this.#byToken.get(tokenOf(text)) ??
      (dot > 0 ? this.#byToken.get(tokenOf(text.slice(0, dot))) : undefined) ??
      this.#byToken.get(tokenOf(text.replace(/^[._]+/, ''))) ??
      NO_LISTS
    );
  }

  /** Every token with its lists, for reports. */
  *entries(): IterableIterator<{ token: string; lists: readonly number[] }> {
    for (const [token, lists] of this.#byToken) yield { token, lists };
  }

  /** The tokens of each of some lists, found in one walk over all. */
  tokensIn(ordinals: readonly number[]): string[][] {
    const found = ordinals.map((): string[] => []);
    for (const [token, lists] of this.#byToken) {
      for (const [at, ordinal] of ordinals.entries()) if (lists.includes(ordinal)) found[at]!.push(token);
    }
    return found;
  }
}
