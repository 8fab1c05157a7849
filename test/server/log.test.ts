import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { createLog, failureFields, requestFailureFields } from '../../src/server/log.ts';

describe('the log', () => {
  it('writes one JSON object a line, with what is common to all lines', () => {
    const lines: string[] = [];
    const log = createLog('info', { worker: 3 }, (line) => lines.push(line));
    log('info', 'listening', { port: 1, text: 'two\nlines' });
    expect(lines.length).toBe(1);
    expect(lines[0]).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: 'info',
      event: 'listening',
      worker: 3,
      port: 1,
      text: 'two\nlines',
    });
  });

  it('leaves out what is less severe than asked for', () => {
    const lines: string[] = [];
    const log = createLog('warn', {}, (line) => lines.push(line));
    for (const level of ['info', 'warn', 'error'] as const) log(level, level);
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['warn', 'error']);
  });

  it('a failure during a request is written without its message: it may quote the request', () => {
    const error = new TypeError('Invalid URL: https://example.com/?token=SECRET\n    of this request');
    const fields = requestFailureFields(error);
    expect(fields).toMatchObject({ code: 'internal', name: 'TypeError' });
    expect(JSON.stringify(fields)).not.toMatch(/SECRET|Invalid URL/);
    expect(fields['stack']).toContain('log.test.ts');
    expect(requestFailureFields('SECRET')).toEqual({ code: 'internal' });
  });

  it('a failure with a code is written with its message', () => {
    const error = new PagegateError('ledger_unavailable', 'The disk is full.');
    expect(requestFailureFields(error)).toEqual({ code: 'ledger_unavailable', message: error.message });
    expect(failureFields(error)).toEqual({ code: 'ledger_unavailable', message: error.message });
    expect(failureFields(new Error('outside of requests'))).toMatchObject({
      code: 'internal',
      message: 'outside of requests',
    });
  });
});
