/** The server's log: one JSON object a line on standard error. It never holds a request target, a key, a domain or a client's address. */
import { writeSync } from 'node:fs';
import { PagegateError } from '../errors.ts';

export type LogLevel = 'error' | 'warn' | 'info';
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Writes one line. `event` is a stable name, `fields` are facts about the server itself. */
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void;

const SEVERITY: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2 };

export function createLog(
  least: LogLevel,
  common: LogFields = {},
  write: (line: string) => void = standardError(),
): Log {
  return (level, event, fields = {}) => {
    if (SEVERITY[level] > SEVERITY[least]) return;
    write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...common, ...fields })}\n`);
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
    // The stream gives up with its first failure; the disk may have room again.
    try {
      writeSync(stderr.fd, line);
    } catch {
      // Nowhere is left to say it.
    }
  };
}

/** What a failure says about itself, for a log line. */
export function failureFields(error: unknown): LogFields {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (error instanceof Error) return { code: 'internal', message: error.message, stack: error.stack ?? '' };
  return { code: 'internal', message: String(error) };
}

/**
 * The same for a failure while a request was answered. The message of an unexpected failure may quote what the client sent, so only
 * its name and the places in the program are written.
 */
export function requestFailureFields(error: unknown): LogFields {
  if (error instanceof PagegateError) return { code: error.code, message: error.message };
  if (!(error instanceof Error)) return { code: 'internal' };
  const places = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
  return { code: 'internal', name: error.name, stack: places.join('\n') };
}
