/** The server's log: one JSON object a line on standard error. It never holds a request target, a key, a domain or a client's address. */
import { writeSync } from 'node:fs';
import { PagegateError } from '../errors.ts';
import { LOG_EVENTS, type LogEvent, type LogFields, type LogLevel, type LogValue } from './log-events.ts';

/** Writes one line. */
export type Log = <E extends LogEvent>(event: E, fields?: LogFields<E>) => void;

export interface LogOptions {
  /** Fields of every line. */
  readonly common?: Readonly<Record<string, LogValue>>;
  /** Takes a line; standard error unless told otherwise. */
  readonly write?: (line: string) => void;
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2 };

/** Lines of one event within {@link WINDOW_SECONDS}: one cause that meets every request must not fill the disk. */
const LINES_MAX = 50;
const WINDOW_SECONDS = 10;

/** The log of a process: events less severe than `least` are left out, and lines of one event are limited in rate. */
export function createLog(least: LogLevel, { common = {}, write = standardError() }: LogOptions = {}): Log {
  const counts = new Map<LogEvent, number>();
  const line = (event: LogEvent, fields: Readonly<Record<string, LogValue>>): void => {
    const { level } = LOG_EVENTS[event];
    if (SEVERITY[level] > SEVERITY[least]) return;
    write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...common, ...fields })}\n`);
  };
  const endWindow = (event: LogEvent): void => {
    const count = (counts.get(event) ?? 0) - LINES_MAX;
    counts.delete(event);
    if (count > 0) line('lines_suppressed', { of: event, count, seconds: WINDOW_SECONDS });
  };
  return (event, fields = {}) => {
    const count = (counts.get(event) ?? 0) + 1;
    counts.set(event, count);
    if (count === 1) setTimeout(endWindow, WINDOW_SECONDS * 1_000, event).unref();
    if (count <= LINES_MAX) line(event, fields);
  };
}

/** Writes to standard error. A log that cannot be written, as on a full disk, must not end the server. */
function standardError(): (line: string) => void {
  const { stderr } = process;
  if (stderr.listenerCount('error') === 0) stderr.on('error', () => {});
  return (line) => {
    if (!stderr.destroyed) {
      stderr.write(line);
      return;
    }
    // The stream gives up with its first failure; the disk may have space again.
    try {
      writeSync(stderr.fd, line);
    } catch {
      // Nowhere is left to say it.
    }
  };
}

/** What a failure says about itself in a log line. */
interface FailureFields {
  readonly code: string;
  readonly message?: string;
  readonly stack?: string;
  /** The kind of failure, where its message may not be written. */
  readonly name?: string;
}

/** What a failure says about itself, for a log line. */
export function failureFields(error: unknown): Omit<FailureFields, 'name'> & { readonly message: string } {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (error instanceof Error) return { code: 'internal', message: error.message, stack: error.stack ?? '' };
  return { code: 'internal', message: String(error) };
}

/**
 * The same for a failure while a request was answered. The message of an unexpected failure may quote what the client sent, so only
 * its name and the places in the program are written.
 */
export function requestFailureFields(error: unknown): FailureFields {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (!(error instanceof Error)) return { code: 'internal' };
  const places = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
  return { code: 'internal', name: error.name, stack: places.join('\n') };
}
