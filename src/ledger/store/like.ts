/** Patterns of `LIKE … ESCAPE '!'`. */

/** Fits what contains a text, in which no character means another. */
export const likeContaining = (text: string): string => `%${text.replace(/[!%_]/g, '!$&')}%`;
