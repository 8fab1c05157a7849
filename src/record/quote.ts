/** Quotes what a line holds, whatever it is. */

/**
 * The beginning of a parsed value's JSON text: what JSON.stringify gives, cut after at least `max` characters. The time it takes and the stack
 * it needs depend on `max` alone (every level of nesting costs a character), so it never throws, however deep the value is.
 * A number too large for a double is `Infinity` or `-Infinity`.
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
