/** CSV by RFC 4180 that is safe to open in a spreadsheet. */

/** Returns one line with its line end. A value that a spreadsheet would interpret as a formula is marked as text. */
export function csvLine(values: readonly (string | number)[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a text as a body of one chunk. */
export async function* oneChunk(text: string): AsyncGenerator<string> {
  yield text;
}
