/** The tables of docs/metrics.md and docs/log-events.md, generated from the tables that the server counts and logs with. */
import { LOG_EVENTS, type LogEventEntry } from '../../src/server/log-events.ts';
import { METRICS, type MetricEntry } from '../../src/server/metric-definitions.ts';
import { code, markdownCell, markdownTable } from './markdown.ts';

/** Formats each entry as `name`: meaning. */
function described(texts: Readonly<Record<string, string>>): string {
  return Object.entries(texts)
    .map(([name, meaning]) => `${code(name)}: ${markdownCell(meaning)}`)
    .join('; ');
}

/** Returns a table of all metrics with their full names. */
function metricTable(): string {
  const rows = Object.entries<MetricEntry>(METRICS).map(([name, { type, meaning, labels, worry }]) => [
    code(`pagegate_${name}`),
    type,
    described(labels),
    markdownCell(meaning),
    markdownCell(worry),
  ]);
  return markdownTable([['metric', 'type', 'labels', 'meaning', 'when to worry'], ...rows]);
}

const LEVELS = { error: 'Errors', warn: 'Warnings', info: 'For information' } as const;

/** Returns a table of the events of each level. */
function eventTables(): string {
  const events = Object.entries<LogEventEntry>(LOG_EVENTS);
  return Object.entries(LEVELS)
    .map(([level, heading]) => {
      const rows = events
        .filter(([, entry]) => entry.level === level)
        .map(([name, { meaning, fields, action }]) => [
          code(name),
          markdownCell(meaning),
          described(fields),
          markdownCell(action),
        ]);
      return `## ${heading}\n\n${markdownTable([['event', 'when', 'fields', 'what to do'], ...rows])}`;
    })
    .join('\n\n');
}

export const metricTables = { metrics: metricTable };
export const logEventTables = { events: eventTables };
