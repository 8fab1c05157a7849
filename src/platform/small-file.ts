/**
 * Reads small files that others have put there: configuration, keys, licenses, policies. A file is read completely or not at all. A pipe, a
 * device or a file that is too large is refused, so that no read blocks or takes more memory than its limit.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type ErrorCode, fromSystem, PagegateError } from '../errors.ts';

const CHUNK_BYTES = 64 * 1024;
const POLL_MS = 10;
const STDIN = 0;

export interface SmallFileOptions {
  /** The largest allowed size, in bytes. */
  readonly maxBytes: number;
  /** The error code of all failures … */
  readonly code: ErrorCode;
  /** … except that it is not a regular file, … */
  readonly kindCode?: ErrorCode;
  /** … and that it is too large. */
  readonly sizeCode?: ErrorCode;
  /** The file's name in messages; by default its path. */
  readonly name?: string;
  /** The option that names a file with a key or a password. If people give the key itself, no message or log repeats it. */
  readonly secretOption?: string;
  /** Refuses a symbolic link at the path. */
  readonly noLink?: boolean;
  /** Reads standard input if the path is `-`. Only for commands that read the file once. */
  readonly stdin?: boolean;
  /** Called with the open file before it is read. May throw to refuse it. */
  readonly inspect?: (stats: Stats) => void;
}

/** PEM, also as Base64; several lines, which no name of a file has; an API key, also a part of one. */
const KEY = /-----BEGIN|LS0tLS1CRUdJTi|[\r\n]|pg_[0-9A-Za-z]{16}/;

/** Whether a value looks like a key, and not like the name of its file. */
export const looksLikeKey = (value: string): boolean => KEY.test(value);

/**
 * Reads a small file.
 *
 * @throws PagegateError with the caller's codes; for an error of the system, `details.reason` is its code, such as `ENOENT`.
 */
export function readSmallFile(path: string, options: SmallFileOptions): Buffer {
  const { code, kindCode = code, name = path } = options;
  try {
    if (options.stdin === true && path === '-') return readWithin(STDIN, path, options);
    const opened = openRegular(path, options.noLink === true);
    if (typeof opened !== 'string') return readOpened(opened, path, options);
    const remedy = options.stdin === true ? 'name the file itself, or - for standard input' : 'name the file itself';
    const what = `${name}: expected a regular file, got ${opened}; ${remedy}.`;
    throw new PagegateError(kindCode, what, { path, expected: 'a regular file', got: opened });
  } catch (error) {
    if (options.secretOption !== undefined && looksLikeKey(path)) throw keyInsteadOfFile(options.secretOption, code);
    throw fromSystem(code, path, error, { name });
  }
}

/** The error has no cause, because that has the path in its message. */
function keyInsteadOfFile(option: string, code: ErrorCode): PagegateError {
  const [expected, got] = ['the name of a file', 'what looks like a key itself'];
  const what = `${option}: expected ${expected}, got ${got}, which is not repeated here; put it into a file and name that.`;
  return new PagegateError(code, what, { option, expected, got });
}

/** Reads a small file; undefined if the path does not exist. @throws PagegateError as {@link readSmallFile} */
export function readSmallFileIfAny(path: string, options: SmallFileOptions): Buffer | undefined {
  try {
    return readSmallFile(path, options);
  } catch (error) {
    if (error instanceof PagegateError && error.details['reason'] === 'ENOENT') return undefined;
    throw error;
  }
}

interface Opened {
  readonly descriptor: number;
  readonly stats: Stats;
}

/** Opens a regular file. Returns a description of anything else, for messages. */
function openRegular(path: string, noLink: boolean): Opened | string {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  let descriptor: number;
  try {
    descriptor = openSync(path, noLink ? flags | constants.O_NOFOLLOW : flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENXIO') return 'a socket or a device';
    if (code === 'ELOOP' && noLink) return 'a link';
    throw error;
  }
  const stats = fstatSync(descriptor);
  if (stats.isFile()) return { descriptor, stats };
  closeSync(descriptor);
  if (stats.isDirectory()) return 'a folder';
  return stats.isFIFO() ? 'a pipe' : 'a device';
}

function readOpened({ descriptor, stats }: Opened, path: string, options: SmallFileOptions): Buffer {
  try {
    options.inspect?.(stats);
    if (stats.size > options.maxBytes) throw tooLarge(path, options, stats.size);
    return readWithin(descriptor, path, options);
  } finally {
    closeSync(descriptor);
  }
}

function tooLarge(path: string, options: SmallFileOptions, got: number | string): PagegateError {
  const { code, sizeCode = code, name = path, maxBytes } = options;
  const what = `${name}: expected at most ${maxBytes} bytes, got ${got}.`;
  return new PagegateError(sizeCode, what, { path, expected: maxBytes, got });
}

/** Reads to the end, whatever size the file reports: it may grow, and some files of the kernel report size 0. */
function readWithin(descriptor: number, path: string, options: SmallFileOptions): Buffer {
  const { maxBytes } = options;
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, maxBytes + 1 - sizeBytes));
    const got = readSome(descriptor, chunk);
    if (got === 0) return Buffer.concat(chunks, sizeBytes);
    sizeBytes += got;
    if (sizeBytes > maxBytes) throw tooLarge(path, options, 'more');
    chunks.push(chunk.subarray(0, got));
  }
}

/** Reads some bytes. Waits if standard input is non-blocking, which another process that shares it may have set. */
function readSome(descriptor: number, into: Buffer): number {
  for (;;) {
    try {
      return readSync(descriptor, into);
    } catch (error) {
      if (descriptor !== STDIN || (error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
    }
  }
}
