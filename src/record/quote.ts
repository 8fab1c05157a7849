/** Quotes any value of a line, for the details of rejects. */

/**
 * Returns the beginning of a parsed value's JSON text: at least the first `max` characters of what JSON.stringify returns. Time and stack depth
 * depend only on `max`, because every level of nesting takes a character. So it never throws, however deep the value is.
 * A number that is too large for a double is written as `Infinity` or `-Infinity`.
 */
export function quoteJson(value: unknown, max: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, max + 1));
  if (typeof value !== 'object' || value === null) return String(value);
  const isList = Array.isArray(value);
  let text = isList ? '[' : '{';
  let isFirst = true;
  for (const [name, member] of Object.entries(value)) {
    if (!isFirst) text += ',';
    isFirst = false;
    if (!isList && text.length < max) text += `${quoteJson(name, max - text.length)}:`;
    if (text.length >= max) return text;
    text += quoteJson(member, max - text.length);
  }
  return text + (isList ? ']' : '}');
}
