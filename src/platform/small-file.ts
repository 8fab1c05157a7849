/**
 * Small files that somebody else put there: configuration, keys, licenses, policies. A file is read whole or not at all. A pipe that nobody
 * writes to, a device or a file of gigabytes is refused: no read waits, and none takes more memory than its limit.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type ErrorCode, fromSystem, PagegateError } from '../errors.ts';

const CHUNK_BYTES = 64 * 1024;
const POLL_MS = 10;
const STDIN = 0;

export interface SmallFileOptions {
  /** The largest size that is read, in bytes. */
  readonly maxBytes: number;
  /** What every failure is called … */
  readonly code: ErrorCode;
  /** … but that something else than a regular file lies there, */
  readonly kindCode?: ErrorCode;
  /** … and that it is too large. */
  readonly sizeCode?: ErrorCode;
  /** What messages call it; its path unless told otherwise. */
  readonly name?: string;
  /** Reads no symbolic link at the path. */
  readonly noLink?: boolean;
  /** Takes the path `-` for standard input. For a command that reads the file once. */
  readonly stdin?: boolean;
  /** Looks at the open file before it is read; what it throws is thrown. */
  readonly inspect?: (stats: Stats) => void;
}

/**
 * The bytes of a small file.
 *
 * @throws PagegateError with the caller's codes; `details.reason` is the system's own code where it refused, such as `ENOENT`.
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
    throw fromSystem(code, path, error, { name });
  }
}

/** The same; undefined where nothing lies there. */
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

/** Opens a regular file, or says what lies there instead. */
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

/** Reads to the end, whatever size the file said it has: it may grow, and some of the kernel's own say none. */
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

/** Standard input may be set to non-blocking by another process that shares it: then a read fails where it would wait. */
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
