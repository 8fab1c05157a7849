/**
 * Lines that wait until there are many of their kind. To read odd lines one after the other takes half as long as to read each between
 * plain ones, and the reader of those keeps the processor's caches for itself meanwhile.
 */
import { LINE_MAX_BYTES } from '../../record/entry.ts';

const HELD_MAX = 256;
/** Space for as many lines of usual size. */
const HELD_MAX_BYTES = 4 * LINE_MAX_BYTES;

/** Reads a line that was held: bytes `start` up to `end` of `buffer`, valid during the call only. */
export type HeldLineReader = (buffer: Buffer, start: number, end: number, part: number, line: number) => void;

/** First in, first out. */
export class HeldLines {
  readonly #read: HeldLineReader;
  readonly #bytes: Buffer = Buffer.allocUnsafeSlow(HELD_MAX_BYTES);
  readonly #ends: Uint32Array = new Uint32Array(HELD_MAX);
  readonly #parts: Uint32Array = new Uint32Array(HELD_MAX);
  /** Numbers of lines exceed 32 bits. */
  readonly #lines: Float64Array = new Float64Array(HELD_MAX);
  #count = 0;
  #filled = 0;

  /** `read` is called with the lines in their order, whenever there are enough. */
  constructor(read: HeldLineReader) {
    this.#read = read;
  }

  /** Holds a copy of the line `buffer[start, end)`, which has at most `LINE_MAX_BYTES`. */
  add(buffer: Buffer, start: number, end: number, part: number, line: number): void {
    if (this.#filled + end - start > HELD_MAX_BYTES) this.readAll();
    this.#filled += buffer.copy(this.#bytes, this.#filled, start, end);
    this.#ends[this.#count] = this.#filled;
    this.#parts[this.#count] = part;
    this.#lines[this.#count] = line;
    this.#count += 1;
    if (this.#count === HELD_MAX) this.readAll();
  }

  /** Reads all that wait. */
  readAll(): void {
    let start = 0;
    for (let i = 0; i < this.#count; i++) {
      const end = this.#ends[i]!;
      this.#read(this.#bytes, start, end, this.#parts[i]!, this.#lines[i]!);
      start = end;
    }
    this.#count = 0;
    this.#filled = 0;
  }
}
