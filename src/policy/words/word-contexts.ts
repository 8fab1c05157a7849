/**
 * What a word stands in, and where in the path: each met word of a token list is one bit of a table, position by position, context by
 * context. A condition is a mask of such bits, so that one `&` tells whether it holds.
 */

/** Every word of path, route and query has one context. Of those that could be said of it, the last one here counts. */
export const CONTEXT = {
  none: 0,
  /** Below a word that announces reading matter where things are done, too (`/support/…`). */
  reading: 1,
  /** Below a word that announces reading matter and nothing else (`/docs/…`). */
  documentation: 2,
  /** Below a word under which every word is a topic (`/reference/…`), or before a text: a sentence, or a word for one (`…/privacy-policy`). */
  topic: 3,
  /** A name that somebody chose: behind `/wiki/`, `/tag/` and the like, of a package or a repository, or a word to search for. */
  title: 4,
  /** A file of a source tree (`/blob/main/…`). */
  source: 5,
} as const;

export type ContextName = Exclude<keyof typeof CONTEXT, 'none'>;

/** How many bits each position has. */
const WIDTH = 6;
const ALL = (1 << WIDTH) - 1;

/** Where a word stands: which of two tables has it, and its first bit there. */
export const POSITION = {
  any: { table: 0, shift: 0 },
  first: { table: 0, shift: WIDTH },
  last: { table: 0, shift: 2 * WIDTH },
  /** Right before a number, a key or an e-mail address that ends the path, or several of them. */
  before_id: { table: 1, shift: 0 },
  /** At the end of the path, right behind a number or a key. */
  after_id: { table: 1, shift: WIDTH },
  /** The first or the last word of a program's name (`deleteItem.do`). */
  part: { table: 1, shift: 2 * WIDTH },
  /** The one segment of the path. */
  only: { table: 1, shift: 3 * WIDTH },
} as const;

/**
 * The contexts in which a condition counts, as bits: all but titles, source files and those it names with everything that is more so;
 * `evenIn` puts back.
 */
export function countingContexts(notIn: readonly ContextName[], evenIn: readonly ContextName[]): number {
  let bits = ALL;
  for (const name of [...notIn, 'title'] as const) bits &= (1 << CONTEXT[name]) - 1;
  for (const name of evenIn) bits |= 1 << CONTEXT[name];
  return bits;
}
