/** Parts of statements that say the same wherever they stand. */

/** The engine's clock, in seconds since 1970. */
export const NOW = 'extract(epoch FROM clock_timestamp())';

/**
 * Whether a row of `nodes` was heard lately.
 *
 * @param seconds how lately: the value's place in the statement, `?` or `$1`.
 */
export const isHeardWithin = (seconds: string): string => `seen_at > ${NOW} - ${seconds}::float8`;

/** Whether a row of `nodes` runs: it was neither stopped in an orderly way nor given up. Heard or not, it may spend what it holds. */
export const IS_RUNNING = "retired_at IS NULL AND session <> ''";

/** What nodes hold of the present cycles: rows `g` of `grants`, beside their accounts `a`. More tables may follow. */
export const GRANTS_AND_ACCOUNTS = 'grants g JOIN accounts a ON a.id = g.account_id';
export const IS_OF_PRESENT_CYCLE = `g.cycle = cycle_at(a.cycle_anchor, ${NOW}::numeric)`;

/** Lookups that a row of `nodes` may spend without asking. */
export const HELD_LOOKUPS = `(SELECT coalesce(sum(g.granted - g.spent), 0)::int8 FROM ${GRANTS_AND_ACCOUNTS} WHERE ${IS_OF_PRESENT_CYCLE} AND g.node = nodes.id)`;
