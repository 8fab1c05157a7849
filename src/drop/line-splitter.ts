/** Splits a stream of bytes into lines. Copies only the few lines that span two chunks. */
import { LINE_MAX_BYTES } from '../record/entry.ts';

/** Receives the lines of a stream in order. */
export interface LineSink {
  /** Called for the line `buffer[start, end)`, without its line end. The bytes are valid only during the call. `number` counts from 1. */
  line(buffer: Buffer, start: number, end: number, number: number): void;
  /** Called for a line longer than `LINE_MAX_BYTES`. Its bytes are dropped. */
  overlong(number: number): void;
  /** Called for each repair of a line, or of the stream. */
  repair(name: 'bom_stripped' | 'crlf' | 'blank_line'): void;
}

const LF = 0x0a;
const CR = 0x0d;
/** Maximum size of a line to keep: with a byte order mark before it and a carriage return after it, which do not count as part of the line. */
export const CARRY_MAX_BYTES: number = 3 + LINE_MAX_BYTES + 1;

/** Passes lines to a sink. Call `push` for every chunk, then `end`. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #carry = Buffer.allocUnsafe(CARRY_MAX_BYTES);
  #carried = 0;
  #isOverlong = false;
  #number = 0;

  /** @param sink is called during `push` and `end` */
  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  /** Sets the number of the next line. Call it only between two lines, if lines were left out. */
  skipTo(number: number): void {
    this.#number = number - 1;
  }

  /** Adds a chunk. The caller may reuse its memory afterwards. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(LF, at);
      if (newline === -1) {
        this.#keep(chunk, at, chunk.length);
        return;
      }
      if (this.#carried > 0 || this.#isOverlong) {
        this.#keep(chunk, at, newline);
        this.#flush();
      } else this.#emit(chunk, at, newline);
      at = newline + 1;
    }
  }

  /** Call after the last chunk. Passes on the last line if it lacks a line end. */
  end(): void {
    if (this.#carried > 0 || this.#isOverlong) this.#flush();
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    if (this.#isOverlong) return;
    if (this.#carried + end - start > CARRY_MAX_BYTES) {
      this.#isOverlong = true;
      return;
    }
    this.#carried += chunk.copy(this.#carry, this.#carried, start, end);
  }

  #flush(): void {
    const length = this.#carried;
    const isOverlong = this.#isOverlong;
    this.#carried = 0;
    this.#isOverlong = false;
    if (isOverlong) {
      this.#number += 1;
      this.#sink.overlong(this.#number);
    } else this.#emit(this.#carry, 0, length);
  }

  #emit(buffer: Buffer, from: number, to: number): void {
    this.#number += 1;
    if (to - from > CARRY_MAX_BYTES) {
      this.#sink.overlong(this.#number);
      return;
    }
    let start = from;
    let end = to;
    if (
      this.#number === 1 &&
      buffer[start] === 0xef &&
      buffer[start + 1] === 0xbb &&
      buffer[start + 2] === 0xbf &&
      end - start >= 3
    ) {
      start += 3;
      this.#sink.repair('bom_stripped');
    }
    if (end > start && buffer[end - 1] === CR) {
      end -= 1;
      this.#sink.repair('crlf');
    }
    if (end === start) this.#sink.repair('blank_line');
    else if (end - start > LINE_MAX_BYTES) this.#sink.overlong(this.#number);
    else this.#sink.line(buffer, start, end, this.#number);
  }
}
