/** Markdown for the reference pages. */

/** Converts a text to a table cell: one line, with escaped vertical bars. */
export function markdownCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();
}

/** Formats a text as code. An empty text stays empty. */
export function code(text: string): string {
  return text === '' ? '' : `\`${markdownCell(text)}\``;
}

/** Formats a table. The first row is its heading. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  return [head, head.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** Formats a text as a sentence: `print JSON` → `Print JSON.` */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  const begun = /^[a-z]+(?=[\s,;:.]|$)/.test(trimmed) ? trimmed[0]?.toUpperCase() + trimmed.slice(1) : trimmed;
  return /[.!?]\)?$/.test(begun) ? begun : `${begun}.`;
}
