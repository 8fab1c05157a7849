/** Markdown as the reference pages write it. */

/** Text of a table's cell: one line, and no bar that would end the cell. */
export function markdownCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();
}

/** Text as code; nothing stays nothing. */
export function code(text: string): string {
  return text === '' ? '' : `\`${markdownCell(text)}\``;
}

/** A table; the first row is its heading. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  return [head, head.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** A sentence as it begins and ends: `print JSON` → `Print JSON.` */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  const begun = /^[a-z]+(?=[\s,;:.]|$)/.test(trimmed) ? trimmed[0]?.toUpperCase() + trimmed.slice(1) : trimmed;
  return /[.!?]\)?$/.test(begun) ? begun : `${begun}.`;
}
