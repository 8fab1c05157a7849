/** The tables of docs/limits.md: every limit, by topic. */
import { counted } from '../../src/counted.ts';
import { LIMIT_TOPICS, type Limit } from '../../src/limits.ts';
import { markdownCell, markdownTable } from './markdown.ts';

const MIB = 2 ** 20;
const DAY_SECONDS = 86_400;

/** Formats a value for people: `8 MiB`, `30 days`, `65,535`. */
function amount({ value, unit }: Limit): string {
  if (unit === 'seconds' && value % DAY_SECONDS === 0) return counted(value / DAY_SECONDS, 'day');
  if (unit === 'milliseconds' && value % 1_000 === 0) return `${value / 1_000} s`;
  if (unit === 'bytes' && value % MIB === 0) return `${value / MIB} MiB`;
  return `${value.toLocaleString('en-US')} ${unit}`.trim();
}

function limitTable(): string {
  return Object.entries(LIMIT_TOPICS)
    .map(([topic, limits]) => {
      const rows = Object.values(limits).map((limit) => [
        markdownCell(limit.what),
        amount(limit),
        markdownCell(limit.reason),
        limit.beyond,
      ]);
      return `## ${topic}\n\n${markdownTable([['what', 'limit', 'why', 'beyond it'], ...rows])}`;
    })
    .join('\n\n');
}

export const limitTables = { limits: limitTable };
