/** Cuts a stream of bytes into lines without copying them, but for the few that lie across two chunks. */
import { LINE_MAX_BYTES } from '../record/entry.ts';

/** Takes lines as they come. */
export interface LineSink {
  /** A line without its line end: bytes `start` up to `end` of `buffer`, valid during the call only. `number` counts from 1. */
  line(buffer: Buffer, start: number, end: number, number: number): void;
  /** A line above `LINE_MAX_BYTES`; its bytes are not kept. */
  overlong(number: number): void;
  /** Repaired, and counted. */
  repair(name: 'bom_stripped' | 'crlf' | 'blank_line'): void;
}

const LF = 0x0a;
const CR = 0x0d;
/** A line may begin with a byte order mark, and end with a carriage return, that are not its own. */
export const CARRY_MAX_BYTES: number = 3 + LINE_MAX_BYTES + 1;

/** Feeds a sink; `push` every chunk, then `end`. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #carry = Buffer.allocUnsafe(CARRY_MAX_BYTES);
  #carried = 0;
  #isOverlong = false;
  #number = 0;

  /** The sink gets the lines while chunks are pushed. */
  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  /** Makes this the number of the next line: between two lines, where others were left out. */
  skipTo(number: number): void {
    this.#number = number - 1;
  }

  /** The chunk's bytes are not needed any more when this returns. */
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

  /** The last line may lack its line end. */
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
