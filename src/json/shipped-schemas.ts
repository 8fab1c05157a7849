/** Options for validators of schemas that ship with the program. */

/** Skips the check of the schema itself. A test checks the shipped schemas, so not every start has to. */
export const SHIPPED_SCHEMA_OPTIONS = { validateSchema: false, meta: false } as const;

/** For a validator that is used only a few times: optimizing it would take longer than all its uses. */
export const SELDOM_USED_SCHEMA_OPTIONS = { ...SHIPPED_SCHEMA_OPTIONS, code: { optimize: false } } as const;
