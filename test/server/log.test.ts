import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { createLog, failureFields, requestFailureFields } from '../../src/server/log.ts';
import { LOG_EVENTS, type LogEvent } from '../../src/server/log-events.ts';
import { sourcesUnder, textOf } from '../tidy/tree.ts';

describe('the log', () => {
  it('writes one JSON object per line, with the common fields, at the level of the event', () => {
    const lines: string[] = [];
    const log = createLog('info', { common: { worker: 3 }, write: (line) => lines.push(line) });
    log('index_refused', { code: 'index_corrupt', message: 'two\nlines' });
    expect(lines.length).toBe(1);
    expect(lines[0]).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: 'error',
      event: 'index_refused',
      worker: 3,
      code: 'index_corrupt',
      message: 'two\nlines',
    });
  });

  it('leaves out lines that are less severe than the configured level', () => {
    const lines: string[] = [];
    const log = createLog('warn', { write: (line) => lines.push(line) });
    for (const event of ['stopping', 'policy_warning', 'worker_died'] as const) log(event);
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['policy_warning', 'worker_died']);
  });

  it('limits the lines of one event per time, and reports how many it left out; each event has its own limit', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const lines: string[] = [];
    const log = createLog('info', { write: (line) => lines.push(line) });
    for (let i = 0; i < 20_000; i++) log('request_failed', { code: 'record_corrupt' });
    log('worker_died');
    const events = (): string[] => lines.map((line) => JSON.parse(line).event);
    expect(events()).toEqual([...Array(50).fill('request_failed'), 'worker_died']);
    vi.advanceTimersByTime(10_000);
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      level: 'warn',
      event: 'lines_suppressed',
      of: 'request_failed',
      count: 19_950,
      seconds: 10,
    });
    log('request_failed', { code: 'record_corrupt' });
    expect(events().slice(-2)).toEqual(['lines_suppressed', 'request_failed']);
    vi.advanceTimersByTime(60_000);
    expect(events().filter((event) => event === 'lines_suppressed')).toHaveLength(1);
  });

  it('writes a failure during a request without its message, which may quote the request', () => {
    const error = new TypeError('Invalid URL: https://example.com/?token=SECRET\n    of this request');
    const fields = requestFailureFields(error);
    expect(fields).toMatchObject({ code: 'internal', name: 'TypeError' });
    expect(JSON.stringify(fields)).not.toMatch(/SECRET|Invalid URL/);
    expect(fields.stack).toContain('log.test.ts');
    expect(requestFailureFields('SECRET')).toEqual({ code: 'internal' });
  });

  it('writes a failure with a code with its message', () => {
    const error = new PagegateError('ledger_unavailable', 'The disk is full.');
    expect(requestFailureFields(error)).toEqual({ code: 'ledger_unavailable', message: error.message });
    expect(failureFields(error)).toEqual({ code: 'ledger_unavailable', message: error.message });
    expect(failureFields(new Error('outside of requests'))).toMatchObject({
      code: 'internal',
      message: 'outside of requests',
    });
  });
});

describe('the table of log events', () => {
  const source = [...sourcesUnder('src/server'), ...sourcesUnder('src/console')]
    .filter((path) => !path.endsWith('log-events.ts'))
    .map(textOf)
    .join('\n');
  const written = new Set(
    [...source.matchAll(/[lL]og\((?:'(\w+)'|`\$\{part\}_(\w+)`)/g)].flatMap(([, name, suffix]) =>
      name === undefined ? ['index', 'policy', 'certificate'].map((part) => `${part}_${suffix}`) : [name],
    ),
  );

  /** Events that are not written by a function named `log`. */
  const WRITTEN_BY = {
    lines_suppressed: "line('lines_suppressed',",
    worker_crashed: "createLog('error', { common: { pid: process.pid } })('worker_crashed',",
  };

  it('contains the events of each part', () => {
    expect(written).toContain('index_in_use');
  });

  it.each(Object.keys(LOG_EVENTS) as LogEvent[])('%s is written somewhere', (event) => {
    if (event in WRITTEN_BY) expect(source).toContain(WRITTEN_BY[event as keyof typeof WRITTEN_BY]);
    else expect(written).toContain(event);
  });

  it.each(Object.keys(LOG_EVENTS) as LogEvent[])('%s says when it is written and what to do', (event) => {
    const { level, meaning, fields, action }: (typeof LOG_EVENTS)[LogEvent] = LOG_EVENTS[event];
    expect([meaning, action, ...Object.values(fields)].join('')).not.toMatch(/\n|\|/);
    expect(meaning).toMatch(/^[A-Z].*\.$/);
    if (level !== 'info') expect(action).toMatch(/^[A-Z].*\.$/);
  });
});
