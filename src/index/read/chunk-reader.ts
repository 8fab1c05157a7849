/** Reads a section sequentially in large pieces. Callers access bytes inside the piece, without a copy. */
import { type IndexSource, readBytes } from './index-source.ts';

/** Default size of a piece. */
const CHUNK_SIZE_BYTES = 1 << 20;

/** Offset and size of a section. */
type Range = { readonly offset: number; readonly size: number };

/** Reads a section at any offset. Sequential access takes one read call for each piece. */
export class ChunkReader {
  /** Position of the requested bytes in the piece that `at` last returned. */
  start = 0;
  readonly #source: IndexSource;
  readonly #offset: number;
  readonly #sizeBytes: number;
  #chunk: Uint8Array;
  #words: Uint32Array;
  /** The chunk contains the bytes [from, to) of the section. */
  #from = 0;
  #to = 0;

  /**
   * A piece is at least as large as the bytes requested, and not larger than the section (rounded up to whole words).
   */
  constructor(source: IndexSource, section: Range, chunkSizeBytes: number = CHUNK_SIZE_BYTES) {
    this.#source = source;
    this.#offset = section.offset;
    this.#sizeBytes = section.size;
    this.#chunk = new Uint8Array(Math.min(chunkSizeBytes, Math.ceil(section.size / 4) * 4));
    this.#words = new Uint32Array(this.#chunk.buffer);
  }

  /** The piece that `at` last returned, as 32-bit words from its beginning on. */
  get words(): Uint32Array {
    return this.#words;
  }

  /**
   * Returns a piece that contains the section's bytes `[offset, offset + size)`, the first of them at `start`. It is valid until the next call.
   * The bytes must be within the section.
   *
   * @throws PagegateError index_changed if the file has been truncated
   */
  at(offset: number, size: number): Uint8Array {
    if (offset < this.#from || offset + size > this.#to) this.#load(offset, size);
    this.start = offset - this.#from;
    return this.#chunk;
  }

  #load(offset: number, size: number): void {
    if (size > this.#chunk.length) {
      this.#chunk = new Uint8Array(Math.ceil(size / 4) * 4);
      this.#words = new Uint32Array(this.#chunk.buffer);
    }
    const length = Math.min(this.#chunk.length, this.#sizeBytes - offset);
    // The chunk contains nothing valid while it is overwritten, or if that fails.
    this.#from = 0;
    this.#to = 0;
    this.#source.readInto(this.#chunk.subarray(0, length), this.#offset + offset);
    this.#from = offset;
    this.#to = offset + length;
  }
}

/** Yields a whole section in pieces, for checksums. A piece is valid until the next one. */
export function* chunksOf(source: IndexSource, section: Range, chunkSizeBytes: number): Generator<Uint8Array> {
  const chunk = new Uint8Array(Math.min(chunkSizeBytes, section.size));
  for (let at = 0; at < section.size; at += chunkSizeBytes) {
    const piece = chunk.subarray(0, Math.min(chunkSizeBytes, section.size - at));
    source.readInto(piece, section.offset + at);
    yield piece;
  }
}

/** True if the source's bytes `[offset, offset + sizeBytes)` are zeros. */
export function isZero(source: IndexSource, offset: number, sizeBytes: number): boolean {
  return readBytes(source, offset, sizeBytes).every((byte) => byte === 0);
}
