/** The tables of docs/errors.md: every error code, by topic. */
import { ERROR_TOPICS } from '../../src/errors.ts';
import { markdownCell, markdownTable } from './markdown.ts';

/** Returns a table of the codes of a topic: HTTP status, exit code, when it occurs and what to do. */
function topicTable(codes: (typeof ERROR_TOPICS)[keyof typeof ERROR_TOPICS]): string {
  const rows = Object.entries(codes).map(([name, { status, exit, message }]) => [
    `\`${name}\``,
    status === undefined ? '' : String(status),
    String(exit),
    markdownCell(message),
  ]);
  return markdownTable([['code', 'HTTP status', 'exit code', 'when it happens, what to do'], ...rows]);
}

function errorTables(): string {
  return Object.entries(ERROR_TOPICS)
    .map(([topic, codes]) => `### ${topic}\n\n${topicTable(codes)}`)
    .join('\n\n');
}

export const errorPageTables = { errors: errorTables };
