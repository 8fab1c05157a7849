/**
 * What a word stands in, and where in the path: each met word of a token list is one bit of a table, position by position, context by
 * context. A condition is a mask of such bits, so that one `&` tells whether it holds.
 */

/** Every segment has one context. Of those that could be said of it, the last one here counts. */
const CONTEXTS = [
  'none',
  /** Below a word that announces reading matter where things are done, too (`/support/…`). */
  'reading',
  /** Below a word that announces reading matter and nothing else (`/docs/…`). */
  'documentation',
  /** Below a word under which every word is a topic (`/commands/…`), and the same below the two before. */
  'topic',
  'reading_topic',
  'documentation_topic',
  /** The one segment behind `/wiki/`, `/tag/` and the like. */
  'title',
  /** A file of a source tree (`/blob/main/…`). */
  'source',
] as const;

type Context = (typeof CONTEXTS)[number];

/** What a policy calls contexts; documentation is reading matter, too. */
const NAMED = {
  reading: ['reading', 'documentation', 'reading_topic', 'documentation_topic'],
  documentation: ['documentation', 'documentation_topic'],
  topic: ['topic', 'reading_topic', 'documentation_topic'],
  title: ['title'],
  source: ['source'],
} as const satisfies Readonly<Record<string, readonly Context[]>>;

export type ContextName = keyof typeof NAMED;

/** The position of a context among its kind. */
export const CONTEXT: Readonly<Record<Context, number>> = Object.freeze(
  Object.fromEntries(CONTEXTS.map((name, at) => [name, at])) as Record<Context, number>,
);

/** Where in the path a word stands; the first bit of each. */
export const POSITION = { any: 0, first: 8, last: 16, before_id: 24 } as const;

/** The contexts in which a condition counts, as bits: all but titles, source files and those it names; `evenIn` puts back. */
export function countingContexts(notIn: readonly ContextName[], evenIn: readonly ContextName[]): number {
  const bits = (names: readonly ContextName[]): number =>
    names.flatMap((name) => NAMED[name]).reduce((mask, context) => mask | (1 << CONTEXT[context]), 0);
  return 0xff & ~(bits([...notIn, 'title', 'source']) & ~bits(evenIn));
}
