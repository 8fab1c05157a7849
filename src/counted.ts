/** Formats numbers for sentences. */

/**
 * Formats a number with commas (`12,000`) and at most three decimal places. Does not use `toLocaleString`: its first call in a process loads
 * the tables of all languages, which takes longer than a short command.
 */
export function withCommas(value: number): string {
  const [whole = '', ...rest] = String(Math.round(value * 1_000) / 1_000).split('.');
  return [whole.replace(/\B(?=(?:\d{3})+$)/g, ','), ...rest].join('.');
}

/**
 * Formats a number with its noun: `1 part`, `12,000 parts`.
 *
 * @param noun in the singular
 * @param plural by default the noun with an s
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${withCommas(count)} ${count === 1 ? noun : plural}`;
}
