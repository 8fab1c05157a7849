/**
 * Bit masks for the position and the context of a word. For each token list, two integers record where its words occur: every position has
 * a group of six bits there, one for each context. A condition is a mask of such bits, so that one `&` shows whether it holds.
 */

/** Every word of a path, a route or a query has exactly one context. If several fit, the highest value counts. */
export const CONTEXT = {
  none: 0,
  /** Below a section that has articles as well as forms (`/support/…`). */
  reading: 1,
  /** Below a section that has documentation only (`/docs/…`). */
  documentation: 2,
  /** Below a section in which every word is a topic (`/reference/…`), or before a text: a sentence, or a segment for one (`…/privacy-policy`). */
  topic: 3,
  /** A freely chosen name: after `/wiki/`, `/tag/` and the like, the name of a package or a repository, or a search term. */
  title: 4,
  /** A file of a source tree (`/blob/main/…`). */
  source: 5,
} as const;

export type ContextName = Exclude<keyof typeof CONTEXT, 'none'>;

/** Number of bits for each position: one for each context. */
const CONTEXT_COUNT = 6;
const ALL_CONTEXTS = (1 << CONTEXT_COUNT) - 1;

/** The positions that a condition can ask for. `table` selects one of the two integers, `shift` is the position's lowest bit in it. */
export const POSITION = {
  any: { table: 0, shift: 0 },
  first: { table: 0, shift: CONTEXT_COUNT },
  last: { table: 0, shift: 2 * CONTEXT_COUNT },
  /** Right before the number, key or e-mail address that ends the path, or before several of them. */
  before_id: { table: 1, shift: 0 },
  /** The last segment, right after a number or a key. */
  after_id: { table: 1, shift: CONTEXT_COUNT },
  /** The first or the last word of a program's name (`deleteItem.do`). */
  part: { table: 1, shift: 2 * CONTEXT_COUNT },
  /** The only segment of the path. */
  only: { table: 1, shift: 3 * CONTEXT_COUNT },
} as const;

/**
 * Returns the contexts in which a condition counts, as bits. By default these are all except titles and source files. Each context in
 * `notIn` is excluded together with all higher ones. `evenIn` adds contexts back.
 */
export function countingContexts(notIn: readonly ContextName[], evenIn: readonly ContextName[]): number {
  let contexts = ALL_CONTEXTS;
  for (const name of [...notIn, 'title'] as const) contexts &= (1 << CONTEXT[name]) - 1;
  for (const name of evenIn) contexts |= 1 << CONTEXT[name];
  return contexts;
}
