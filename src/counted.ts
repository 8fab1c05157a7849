/** Numbers in sentences. */

/**
 * A number with commas: `12,000`; at most three digits after the point. The first `toLocaleString` of a process loads the tables of all
 * languages, which takes longer than a short command.
 */
export function withCommas(value: number): string {
  const [whole = '', ...rest] = String(Math.round(value * 1_000) / 1_000).split('.');
  return [whole.replace(/\B(?=(?:\d{3})+$)/g, ','), ...rest].join('.');
}

/**
 * A number with its noun, as a sentence has them: `1 part`, `12,000 parts`.
 *
 * @param noun in the singular
 * @param plural where it is not the noun with an s
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${withCommas(count)} ${count === 1 ? noun : plural}`;
}
