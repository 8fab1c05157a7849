/** Reads one file of a decision log from its end. Its lines are sorted by time. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { LINE_FEED } from '../../bytes/ascii.ts';
import { LIMITS } from '../../limits.ts';
import { type DecisionFilter, isWanted, type LoggedDecision, needles, parseDecision } from './filter.ts';

const FIRST_CHUNK_BYTES = 64 * 1024;
/** While nothing is found, the chunks grow up to this size. */
export const CHUNK_MAX_BYTES = 1024 * 1024;
/** A longer line is not a line of the decision log. */
const LINE_MAX_BYTES = LIMITS.consoleLogLineBytes.value;
/** Offset and length of the time in a line: `{"time":"2026-01-02T03:04:05.678Z"` */
const TIME_AT = 9;
const TIME_LENGTH = 24;
const HEAD = '{"time":"';

/** Returns the time of a line; undefined if it does not begin like a line of the decision log. */
function timeOf(bytes: Buffer, at: number): string | undefined {
  const text = bytes.toString('latin1', at, at + TIME_AT + TIME_LENGTH);
  return text.length === TIME_AT + TIME_LENGTH && text.startsWith(HEAD) && text.endsWith('Z')
    ? text.slice(TIME_AT)
    : undefined;
}

/** Later than every time: nothing has been read yet. */
export const UNREAD = '\uffff';
/** Earlier than every time: everything has been read. */
export const ALL_READ = '';

/** A position in a file that moves from its end to its beginning. */
export class LogCursor {
  /** Matching lines that were read and not consumed yet, newest first. */
  readonly found: LoggedDecision[] = [];
  /** Every line later than this time has been read. */
  readTo: string;
  readonly #path: string;
  readonly #filter: DecisionFilter;
  readonly #needles: readonly Buffer[];
  readonly #buffer: Buffer;
  #isOver = false;
  #file: FileHandle | undefined;
  /** The end of the part of the file that has not been read yet. */
  #end = 0;
  #chunkBytes = FIRST_CHUNK_BYTES;

  /**
   * @param latest an upper bound of the times in the file, as far as it is known before reading
   * @param buffer of {@link CHUNK_MAX_BYTES}; used only during {@link advance}, so that several cursors can share it
   */
  constructor(path: string, latest: string, filter: DecisionFilter, buffer: Buffer) {
    this.#path = path;
    this.readTo = latest;
    this.#filter = filter;
    this.#needles = needles(filter);
    this.#buffer = buffer;
  }

  /** No further line of this cursor is later than this time. */
  get position(): string {
    return this.found[0]?.time ?? this.readTo;
  }

  /** Reads one more chunk; returns how many bytes have been processed. */
  async advance(): Promise<number> {
    if (this.#file === undefined && !(await this.#open())) {
      await this.close();
      return 0;
    }
    const file = this.#file!;
    const end = this.#end;
    let begin = Math.max(0, end - this.#chunkBytes);
    const bytes = this.#buffer.subarray(0, end - begin);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, begin);
    // A line that began before this chunk is read with the next one.
    let from = 0;
    if (begin > 0) {
      from = bytes.indexOf(LINE_FEED) + 1;
      if (from === 0 && bytes.length < LINE_MAX_BYTES) {
        this.#chunkBytes = LINE_MAX_BYTES;
        return 0;
      }
      if (from === 0) from = bytes.length;
    }
    begin += from;
    this.#take(bytes.subarray(from, bytesRead));
    this.#chunkBytes = this.found.length > 0 ? FIRST_CHUNK_BYTES : Math.min(2 * this.#chunkBytes, CHUNK_MAX_BYTES);
    this.#end = begin;
    const { from: earliest } = this.#filter;
    if (this.#end === 0 || (earliest !== undefined && this.readTo < earliest)) await this.close();
    return end - begin;
  }

  /** Ends the reading; lines in `found` stay. */
  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#isOver = true;
    this.readTo = ALL_READ;
    await file?.close();
  }

  async #open(): Promise<boolean> {
    const { from, to } = this.#filter;
    if (this.#isOver || (from !== undefined && this.readTo < from)) return false;
    try {
      this.#file = await open(this.#path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      // It was pruned meanwhile, or it cannot be opened as a log file.
      return false;
    }
    const stats = await this.#file.stat();
    const size = stats.isFile() ? stats.size : 0;
    this.#end = to === undefined ? size : await this.#seek(this.#file, size, to);
    return this.#end > 0;
  }

  /** Finds, by binary search, an offset that follows all lines up to a time. Some later lines may precede it, too. */
  async #seek(file: FileHandle, size: number, to: string): Promise<number> {
    const bytes = this.#buffer.subarray(0, FIRST_CHUNK_BYTES);
    let [low, high] = [0, size];
    while (high - low > FIRST_CHUNK_BYTES) {
      const middle = Math.floor((low + high) / 2);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, middle);
      const line = bytes.subarray(0, bytesRead).indexOf(LINE_FEED) + 1;
      const time = line === 0 ? undefined : timeOf(bytes.subarray(0, bytesRead), line);
      if (time === undefined) break;
      if (time > to) high = middle + line;
      else low = middle + line;
    }
    return high;
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const first = timeOf(bytes, 0);
    const found: LoggedDecision[] = [];
    const consider = (begin: number, end: number): void => {
      const line = parseDecision(bytes.toString('utf8', begin, end));
      if (line === undefined || !isWanted(line, this.#filter)) return;
      const { from, to } = this.#filter;
      if ((from === undefined || line.time >= from) && (to === undefined || line.time <= to)) found.push(line);
    };
    if (this.#needles.length === 0) eachLine(bytes, consider);
    else eachLineWith(bytes, this.#needles, consider);
    this.found.push(...found.reverse());
    if (first !== undefined) this.readTo = first;
  }
}

function eachLine(bytes: Buffer, task: (begin: number, end: number) => void): void {
  for (let begin = 0; begin < bytes.length; ) {
    const feed = bytes.indexOf(LINE_FEED, begin);
    // A line without a line feed is still being written.
    if (feed === -1) return;
    task(begin, feed);
    begin = feed + 1;
  }
}

/** Calls `task` for the lines that contain all needles. The needle with the farthest next match bounds where such a line can be. */
function eachLineWith(bytes: Buffer, needles: readonly Buffer[], task: (begin: number, end: number) => void): void {
  const at = needles.map(() => -1);
  for (let begin = 0; ; ) {
    let farthest = begin;
    for (const [i, needle] of needles.entries()) {
      if (at[i]! < begin) at[i] = bytes.indexOf(needle, begin);
      if (at[i] === -1) return;
      farthest = Math.max(farthest, at[i]!);
    }
    const lineBegin = bytes.lastIndexOf(LINE_FEED, farthest) + 1;
    const lineEnd = bytes.indexOf(LINE_FEED, farthest);
    // A line without a line feed is still being written.
    if (lineEnd === -1) return;
    const hasAll = at.every((place) => place >= lineBegin);
    if (hasAll) task(lineBegin, lineEnd);
    begin = hasAll ? lineEnd + 1 : lineBegin;
  }
}
