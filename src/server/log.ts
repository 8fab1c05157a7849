/** The server's log: one JSON object per line on standard error. It never holds a request target, a key, a domain or a client's address. */
import { writeSync } from 'node:fs';
import { PagegateError } from '../errors.ts';
import { LOG_EVENTS, type LogEvent, type LogFields, type LogLevel, type LogValue } from './log-events.ts';

/** Writes one line. */
export type Log = <E extends LogEvent>(event: E, fields?: LogFields<E>) => void;

export interface LogOptions {
  /** Fields that every line has. */
  readonly common?: Readonly<Record<string, LogValue>>;
  /** Writes a line; by default, to standard error. */
  readonly write?: (line: string) => void;
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2 };

/** Most lines of one event within {@link WINDOW_SECONDS}: a problem that affects every request must not fill the disk. */
const LINES_MAX = 50;
const WINDOW_SECONDS = 10;

/** Creates the log of a process. Events less severe than `least` are left out, and the lines of each event are rate-limited. */
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

/** Returns a function that writes to standard error. A failed write, such as on a full disk, must not end the server. */
function standardError(): (line: string) => void {
  const { stderr } = process;
  if (stderr.listenerCount('error') === 0) stderr.on('error', () => {});
  return (line) => {
    if (!stderr.destroyed) {
      stderr.write(line);
      return;
    }
    // A stream is destroyed by its first failure, but the disk may have space again.
    try {
      writeSync(stderr.fd, line);
    } catch {
      // There is no other place to report the failure.
    }
  };
}

/** The fields of a failure in a log line. */
interface FailureFields {
  readonly code: string;
  readonly message?: string;
  readonly stack?: string;
  /** The name of the error class, for a failure whose message may not be logged. */
  readonly name?: string;
}

/** Returns the log fields of a failure, with its message. */
export function failureFields(error: unknown): Omit<FailureFields, 'name'> & { readonly message: string } {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (error instanceof Error) return { code: 'internal', message: error.message, stack: error.stack ?? '' };
  return { code: 'internal', message: String(error) };
}

/**
 * Returns the log fields of a failure while a request was answered. The message of an unexpected failure may quote the request, so only
 * the name of the error and the stack's code locations are logged.
 */
export function requestFailureFields(error: unknown): FailureFields {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (!(error instanceof Error)) return { code: 'internal' };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
  return { code: 'internal', name: error.name, stack: frames.join('\n') };
}
