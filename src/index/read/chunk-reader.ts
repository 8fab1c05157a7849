/** A section that is read from front to back in large pieces: what is asked for is looked at where it lies in the piece. */
import { type IndexSource, readBytes } from './index-source.ts';

/** Read at once, unless told otherwise. */
const CHUNK_SIZE_BYTES = 1 << 20;

/** Where a section lies. */
type Range = { readonly offset: number; readonly size: number };

/** Reads one section, wherever in it is asked for; in order it costs one call for each piece. */
export class ChunkReader {
  /** Where, in what `at` returned last, the asked-for offset is. */
  start = 0;
  readonly #source: IndexSource;
  readonly #offset: number;
  readonly #sizeBytes: number;
  #chunk: Uint8Array;
  #words: Uint32Array;
  /** Which bytes of the section the chunk holds: [from, to). */
  #from = 0;
  #to = 0;

  /**
   * For the section that begins at byte `offset` of the source. A piece is at least as large as what is asked for, and no larger than the
   * section.
   */
  constructor(source: IndexSource, section: Range, chunkSizeBytes: number = CHUNK_SIZE_BYTES) {
    this.#source = source;
    this.#offset = section.offset;
    this.#sizeBytes = section.size;
    this.#chunk = new Uint8Array(Math.min(chunkSizeBytes, Math.ceil(section.size / 4) * 4));
    this.#words = new Uint32Array(this.#chunk.buffer);
  }

  /** The piece that `at` returned last as 32-bit words, which begin where it begins. */
  get words(): Uint32Array {
    return this.#words;
  }

  /**
   * The piece that has the section's bytes `[offset, offset + size)`, the first of them at `start`; valid until the next call. They must lie
   * within the section.
   *
   * @throws PagegateError index_changed where the file has become shorter
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
    // Nothing is held while it is overwritten, or if that fails.
    this.#from = 0;
    this.#to = 0;
    this.#source.readInto(this.#chunk.subarray(0, length), this.#offset + offset);
    this.#from = offset;
    this.#to = offset + length;
  }
}

/** A section as a whole, in pieces: what a checksum is taken of. */
export function* chunksOf(source: IndexSource, section: Range, chunkSizeBytes: number): Generator<Uint8Array> {
  const chunk = new Uint8Array(Math.min(chunkSizeBytes, section.size));
  for (let at = 0; at < section.size; at += chunkSizeBytes) {
    const piece = chunk.subarray(0, Math.min(chunkSizeBytes, section.size - at));
    source.readInto(piece, section.offset + at);
    yield piece;
  }
}

/** True when the source's bytes `[offset, offset + sizeBytes)` are zeros. */
export function isZero(source: IndexSource, offset: number, sizeBytes: number): boolean {
  return readBytes(source, offset, sizeBytes).every((byte) => byte === 0);
}
