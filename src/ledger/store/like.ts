/** Patterns of `LIKE … ESCAPE '!'`. */

/** A pattern that matches strings with `text` as a literal substring: wildcards in it are escaped. */
export const likeContaining = (text: string): string => `%${text.replace(/[!%_]/g, '!$&')}%`;
