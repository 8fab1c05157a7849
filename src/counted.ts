/**
 * A number with its noun, as a sentence has them: `1 part`, `12,000 parts`.
 *
 * @param noun in the singular; its plural takes an s
 */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
