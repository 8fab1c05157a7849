/**
 * Collects lines to read them in batches. Reading a batch of unusual lines takes half as long as reading each between plain ones, and the
 * fast scanner does not have to share the processor's caches meanwhile.
 */
import { LINE_MAX_BYTES } from '../../record/entry.ts';

const HELD_MAX = 256;
/** Enough space for `HELD_MAX` lines of usual size. */
const HELD_MAX_BYTES = 4 * LINE_MAX_BYTES;

/** Reads the held line `buffer[start, end)`. The bytes are valid only during the call. */
export type HeldLineReader = (buffer: Buffer, start: number, end: number, part: number, line: number) => void;

/** Holds copies of lines and passes them on in the same order. */
export class HeldLines {
  readonly #read: HeldLineReader;
  readonly #bytes: Buffer = Buffer.allocUnsafeSlow(HELD_MAX_BYTES);
  readonly #ends: Uint32Array = new Uint32Array(HELD_MAX);
  readonly #parts: Uint32Array = new Uint32Array(HELD_MAX);
  /** Line numbers. They can exceed 32 bits. */
  readonly #lines: Float64Array = new Float64Array(HELD_MAX);
  #count = 0;
  #filled = 0;

  /** `read` is called for each held line, in order, whenever the batch is full. */
  constructor(read: HeldLineReader) {
    this.#read = read;
  }

  /** Holds a copy of the line `buffer[start, end)`, at most `LINE_MAX_BYTES` long. */
  add(buffer: Buffer, start: number, end: number, part: number, line: number): void {
    if (this.#filled + end - start > HELD_MAX_BYTES) this.readAll();
    this.#filled += buffer.copy(this.#bytes, this.#filled, start, end);
    this.#ends[this.#count] = this.#filled;
    this.#parts[this.#count] = part;
    this.#lines[this.#count] = line;
    this.#count += 1;
    if (this.#count === HELD_MAX) this.readAll();
  }

  /** Reads all held lines. */
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
