/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/** One line with its end. A value that a spreadsheet would take for a formula is shown as text. */
export function csvLine(values: readonly (string | number)[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A text as a body that is sent at once. */
export async function* oneChunk(text: string): AsyncGenerator<string> {
  yield text;
}
