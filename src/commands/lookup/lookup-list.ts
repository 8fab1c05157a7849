/** Looks up a list of domains and URLs line by line at the speed of the index. Writes NDJSON; memory stays bounded. */
import { createReadStream } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { COMMA, LINE_FEED } from '../../bytes/ascii.ts';
import { errorCodeOf, parseTarget, type TargetProblem } from '../../domain/target.ts';
import { type LineSink, LineSplitter } from '../../drop/line-splitter.ts';
import { fromSystem } from '../../errors.ts';
import { type Index, NO_RECORD } from '../../index/read.ts';

/** Size of one read. */
const READ_SIZE_BYTES = 1 << 16;
/** Input that is looked up between two checks of how much output is buffered. */
const SLICE_SIZE_BYTES = 1 << 12;
/** Buffered output above this size is written. */
const WRITE_SIZE_BYTES = 1 << 20;
/** Maximum size of a line of output without the input and the answer. */
const FRAME_MAX_BYTES = 256;

/** Number of lines by result. */
export interface ListCounts {
  readonly found: number;
  readonly notFound: number;
  /** Lines that are not a domain or URL. */
  readonly bad: number;
}

/** The source of the list and the destination of the answers. */
export interface ListStreams {
  /** A file, or `-` for standard input. */
  readonly path: string;
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Called with the number of lines so far. */
  readonly onProgress: (lines: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Looks up every line that is not blank, and writes one line for each, in the same order.
 *
 * @throws PagegateError list_unreadable
 * @throws PagegateError record_corrupt at the first damaged record; index_changed
 */
export async function lookUpList(index: Index, streams: ListStreams): Promise<ListCounts> {
  const { path, write, onProgress, signal } = streams;
  const answers = new AnswerLines(index);
  const lines = new LineSplitter(answers);
  const flush = async (): Promise<void> => {
    // Writes to a file finish without yielding: without a turn of the event loop no signal would be handled.
    await nextTurn();
    signal.throwIfAborted();
    requireUnchanged(index);
    onProgress(answers.lines);
    await write(answers.take());
  };
  for await (const chunk of chunksOf(path, signal)) {
    for (let at = 0; at < chunk.length; at += SLICE_SIZE_BYTES) {
      // Since the last check, time may have passed waiting for the list or for the reader of the answers.
      requireUnchanged(index);
      lines.push(chunk.subarray(at, at + SLICE_SIZE_BYTES));
      if (answers.sizeBytes >= WRITE_SIZE_BYTES) await flush();
    }
    // A short read: a person or program may be writing the list interactively and waits for the answers.
    if (chunk.length < READ_SIZE_BYTES) await flush();
  }
  requireUnchanged(index);
  lines.end();
  await flush();
  const { found, notFound, bad } = answers;
  return { found, notFound, bad };
}

/** Answers from a modified index are wrong, and reading a truncated one would crash the process. @throws PagegateError index_changed */
function requireUnchanged(index: Index): void {
  const problem = index.fileProblem();
  if (problem !== undefined) throw problem;
}

async function* chunksOf(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  // Node handles the kinds of standard input: terminal, pipe, socket or file.
  const stream = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: READ_SIZE_BYTES });
  addAbortSignal(signal, stream);
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    signal.throwIfAborted();
    throw fromSystem('list_unreadable', path, error, { name: path === '-' ? 'standard input' : path });
  }
}

/** Receives the lines of the list and buffers the lines of the output. */
class AnswerLines implements LineSink {
  found = 0;
  notFound = 0;
  bad = 0;
  readonly #index: Index;
  readonly #answerMaxBytes: number;
  #out: Buffer = Buffer.allocUnsafe(2 * WRITE_SIZE_BYTES);
  #size = 0;

  constructor(index: Index) {
    this.#index = index;
    this.#answerMaxBytes = index.info.maxAnswerSizeBytes;
  }

  get lines(): number {
    return this.found + this.notFound + this.bad;
  }

  /** Size of the buffered output. */
  get sizeBytes(): number {
    return this.#size;
  }

  /** Returns the buffered output and clears the buffer. */
  take(): Uint8Array {
    const bytes = this.#out.subarray(0, this.#size);
    // The stream may keep the old buffer for longer.
    this.#out = Buffer.allocUnsafe(Math.max(this.#out.length, 2 * WRITE_SIZE_BYTES));
    this.#size = 0;
    return bytes;
  }

  line(buffer: Buffer, start: number, end: number, number: number): void {
    // A byte of the input becomes at most six bytes (`\u0000`).
    this.#reserve(FRAME_MAX_BYTES + 6 * (end - start) + this.#answerMaxBytes);
    const value = buffer.toString('utf8', start, end);
    const target = parseTarget(value);
    if ('problem' in target) {
      this.#writeBad(number, `"input":${quote(value)},`, target.problem);
      return;
    }
    const handle = target.classifiable ? this.#index.find(target.key) : NO_RECORD;
    this.#writeText(`{"input":${quote(value)}`);
    if (handle === NO_RECORD) {
      this.notFound += 1;
      this.#writeText(`,"domain":${quote(target.key)},"found":false,"page_types":{}}`);
    } else {
      this.found += 1;
      const head = this.#size;
      const tail = this.#index.writeHead(handle, this.#out, head);
      this.#size = this.#index.writeTail(handle, this.#out, tail);
      // The answer continues the object that `input` began: its opening brace becomes a comma.
      this.#out[head] = COMMA;
    }
    this.#out[this.#size++] = LINE_FEED;
  }

  overlong(number: number): void {
    this.#reserve(FRAME_MAX_BYTES);
    this.#writeBad(number, '', 'value_too_long');
  }

  repair(): void {}

  #writeBad(number: number, input: string, reason: TargetProblem): void {
    this.bad += 1;
    this.#writeText(`{"line":${number},${input}"error":"${errorCodeOf(reason)}","reason":"${reason}"}\n`);
  }

  /** Appends ASCII text. */
  #writeText(text: string): void {
    this.#size += this.#out.write(text, this.#size, 'latin1');
  }

  #reserve(sizeBytes: number): void {
    if (this.#size + sizeBytes <= this.#out.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#out.length + sizeBytes);
    this.#out.copy(larger, 0, 0, this.#size);
    this.#out = larger;
  }
}

/** Returns a text as a JSON string in printable ASCII, so that it is safe on a terminal. */
function quote(text: string): string {
  if (/^[ !#-[\]-~]*$/.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
