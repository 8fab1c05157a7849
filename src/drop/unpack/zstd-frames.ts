/**
 * Finds where the frames of a zstd file end, from their headers alone (RFC 8878, section 3.1). A file may hold any number of frames, one
 * behind the other; the decompressor drops what comes behind a frame in the bytes that it was given together, so it gets them apart.
 */

const FRAME_MAGIC = 0xfd2f_b528;
/** Frames for other programs, with sixteen magic numbers; they unpack to nothing. */
const SKIPPABLE_MAGIC = 0x184d_2a50;
const MAGIC_BYTES = 4;
const SKIPPABLE_SIZE_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
/** By their flags in the frame's descriptor, in bytes. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;

/** What is being read; of the first four kinds the value counts. */
type Field =
  | 'magic'
  | 'descriptor'
  | 'skippable size'
  | 'block header'
  | 'frame header'
  | 'block'
  | 'checksum'
  | 'skippable';

/** Walks through a file, chunk by chunk. */
export class ZstdFrames {
  #field: Field = 'magic';
  /** Bytes of the field that have not come yet. */
  #left = MAGIC_BYTES;
  /** The field's bytes so far, little-endian. */
  #value = 0;
  #shift = 0;
  #hasChecksum = false;
  #isLastBlock = false;

  /** True before the first frame and behind each: here the file may end. */
  get isBetweenFrames(): boolean {
    return this.#field === 'magic' && this.#left === MAGIC_BYTES;
  }

  /**
   * Goes on in `chunk` from `start`: to the end of the frame, or of the chunk where the frame is longer. Returns the offset behind it.
   *
   * @throws Error where what begins there is not a frame
   */
  advance(chunk: Uint8Array, start: number): number {
    let at = start;
    while (at < chunk.length) {
      const size = Math.min(this.#left, chunk.length - at);
      if (this.#isCounted()) this.#count(chunk, at, size);
      at += size;
      this.#left -= size;
      if (this.#left > 0) break;
      this.#endField();
      if (this.isBetweenFrames) break;
    }
    return at;
  }

  #isCounted(): boolean {
    const field = this.#field;
    return field === 'magic' || field === 'descriptor' || field === 'skippable size' || field === 'block header';
  }

  #count(chunk: Uint8Array, start: number, size: number): void {
    for (let i = start; i < start + size; i++) {
      this.#value = (this.#value | (chunk[i]! << this.#shift)) >>> 0;
      this.#shift += 8;
    }
  }

  #begin(field: Field, size: number): void {
    this.#field = field;
    this.#left = size;
    this.#value = 0;
    this.#shift = 0;
    if (size === 0) this.#endField();
  }

  #endField(): void {
    const value = this.#value;
    switch (this.#field) {
      case 'magic':
        this.#beginFrame(value);
        break;
      case 'descriptor':
        this.#beginHeader(value);
        break;
      case 'skippable size':
        this.#begin('skippable', value);
        break;
      case 'block header':
        this.#beginBlock(value);
        break;
      case 'frame header':
        this.#begin('block header', BLOCK_HEADER_BYTES);
        break;
      case 'block':
        if (!this.#isLastBlock) this.#begin('block header', BLOCK_HEADER_BYTES);
        else if (this.#hasChecksum) this.#begin('checksum', CHECKSUM_BYTES);
        else this.#begin('magic', MAGIC_BYTES);
        break;
      default:
        this.#begin('magic', MAGIC_BYTES);
    }
  }

  #beginFrame(magic: number): void {
    if (magic === FRAME_MAGIC) this.#begin('descriptor', 1);
    else if ((magic & 0xffff_fff0) >>> 0 === SKIPPABLE_MAGIC) this.#begin('skippable size', SKIPPABLE_SIZE_BYTES);
    else throw new Error('what begins there is no zstd frame');
  }

  /** What is left of a frame's header behind its descriptor: the window, the dictionary's id, the size of the content. */
  #beginHeader(descriptor: number): void {
    const isSingleSegment = (descriptor & 0x20) !== 0;
    const sizeFlag = descriptor >>> 6;
    this.#hasChecksum = (descriptor & 0x04) !== 0;
    const contentSizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[sizeFlag]!;
    this.#begin('frame header', (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3]! + contentSizeBytes);
  }

  #beginBlock(header: number): void {
    const kind = (header >>> 1) & 3;
    if (kind === RESERVED_BLOCK) throw new Error('a zstd block is of no known kind');
    this.#isLastBlock = (header & 1) !== 0;
    this.#begin('block', kind === RLE_BLOCK ? 1 : header >>> 3);
  }
}
