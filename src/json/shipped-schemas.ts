/** How a validator is made for a schema that comes with the program. */

/** A test checks those schemas, so that not every start has to. */
export const SHIPPED_SCHEMA_OPTIONS = { validateSchema: false, meta: false } as const;

/** The same where a validator is asked a few times: to optimize it would take longer than all that it is asked. */
export const SELDOM_USED_SCHEMA_OPTIONS = { ...SHIPPED_SCHEMA_OPTIONS, code: { optimize: false } } as const;
