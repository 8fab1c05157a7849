/** SQL fragments that several statements share. */

/** The engine's clock, in seconds since 1970. */
export const NOW = 'extract(epoch FROM clock_timestamp())';

/**
 * A condition: the node of a row of `nodes` has reported within a time.
 *
 * @param seconds the placeholder of that time in the statement, `?` or `$1`.
 */
export const isHeardWithin = (seconds: string): string => `seen_at > ${NOW} - ${seconds}::float8`;

/**
 * A condition: the node of a row of `nodes` was neither stopped in an orderly way nor retired. Even if it has not reported lately, it may
 * spend what it holds.
 */
export const IS_RUNNING = "retired_at IS NULL AND session <> ''";

/** Joins the rows `g` of `grants` with their accounts `a`. With {@link IS_OF_PRESENT_CYCLE}, they are what nodes hold of the current cycles. */
export const GRANTS_AND_ACCOUNTS = 'grants g JOIN accounts a ON a.id = g.account_id';
export const IS_OF_PRESENT_CYCLE = `g.cycle = cycle_at(a.cycle_anchor, ${NOW}::numeric)`;

/** The number of lookups that the node of a row of `nodes` may spend without asking. */
export const HELD_LOOKUPS = `(SELECT coalesce(sum(g.granted - g.spent), 0)::int8 FROM ${GRANTS_AND_ACCOUNTS} WHERE ${IS_OF_PRESENT_CYCLE} AND g.node = nodes.id)`;
