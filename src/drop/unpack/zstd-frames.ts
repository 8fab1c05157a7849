/**
 * Splits a zstd file into its frames, by their headers alone (RFC 8878, section 3.1). A file may consist of any number of frames. If one write
 * to Node's decompressor contains bytes of two frames, it drops the second (nodejs/node#64741), so each frame is written separately. This
 * can be removed once the pinned Node.js reads two frames of one write.
 *
 * Empty frames and skippable frames are not passed to the decompressor at all: a million of them would take it a minute.
 */

const FRAME_MAGIC = 0xfd2f_b528;
/** First of the sixteen magic numbers of skippable frames, which hold data for other programs and unpack to nothing. */
const SKIPPABLE_MAGIC = 0x184d_2a50;
const MAGIC_BYTES = 4;
const SKIPPABLE_SIZE_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
/** Checksum of empty content: the low half of its XXH64. */
const EMPTY_CHECKSUM = 0x51d8_e999;
/** A frame with empty content. */
export const EMPTY_FRAME: Uint8Array = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0);
/** Sizes of fields by their flags in the frame's descriptor, in bytes. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
const RAW_BLOCK = 0;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;
/** Maximum size of a frame's bytes before the content of its first block. */
const HEADER_MAX_BYTES = MAGIC_BYTES + 1 + 1 + 4 + 8 + BLOCK_HEADER_BYTES;
/** The decompressor accepts no larger window. It needs this much memory for a frame. */
const WINDOW_MAX_BYTES: number = 2 ** 27;

/** A frame is valid according to RFC 8878, but this program cannot unpack it. The vendor can pack it in another way. */
export class UnsupportedFrame extends Error {}

/** The field that is being read. The contents of `skippable` and `block` are not looked at. */
type Field =
  | 'magic'
  | 'descriptor'
  | 'frame header'
  | 'block header'
  | 'checksum'
  | 'skippable size'
  | 'skippable'
  | 'block';

/** Parses the frames of a file, chunk by chunk. */
export class ZstdFrames {
  /** Number of frames so far, without empty and skippable ones. */
  count = 0;
  /** Bytes that the last `advance` parsed and that must be passed to the decompressor. All are of one frame. */
  pieces: Uint8Array[] = [];
  #field: Field = 'magic';
  /** Number of bytes of the field that are still missing. */
  #left = MAGIC_BYTES;
  /** Value of the field so far, little-endian. Meaningless for a frame header. */
  #value = 0;
  #shift = 0;
  #hasChecksum = false;
  #isLastBlock = false;
  /** The header of the current frame, as far as it has been read. */
  readonly #header: Uint8Array = new Uint8Array(HEADER_MAX_BYTES);
  #headerSize = 0;
  #isHeld = true;

  /** True before the first frame and after each frame. The file may end here. */
  get isBetweenFrames(): boolean {
    return this.#field === 'magic' && this.#left === MAGIC_BYTES;
  }

  /**
   * Parses `chunk` from `start` on, up to the end of the frame or of the chunk. Returns the offset at which it stopped.
   *
   * @throws UnsupportedFrame if the frame needs a dictionary, or a window larger than `WINDOW_MAX_BYTES`
   * @throws Error if the bytes are not a valid frame
   */
  advance(chunk: Uint8Array, start: number): number {
    if (this.pieces.length > 0) this.pieces = [];
    let at = start;
    let feedFrom = start;
    let isFed = !this.#isHeld;
    while (at < chunk.length) {
      const size = Math.min(this.#left, chunk.length - at);
      this.#take(chunk, at, size);
      at += size;
      this.#left -= size;
      if (this.#left > 0) break;
      const headerSize = this.#headerSize;
      this.#endField();
      if (!isFed && !this.#isHeld) {
        isFed = true;
        this.count += 1;
        // Nearly always, this chunk contains the whole header.
        if (headerSize <= at - start) feedFrom = at - headerSize;
        else {
          this.pieces.push(this.#header.slice(0, headerSize));
          feedFrom = at;
        }
      }
      if (this.isBetweenFrames) break;
    }
    if (isFed && at > feedFrom) this.pieces.push(chunk.subarray(feedFrom, at));
    if (this.isBetweenFrames) this.#isHeld = true;
    return at;
  }

  /** Reads bytes of the current field, and keeps them as needed. */
  #take(chunk: Uint8Array, start: number, size: number): void {
    const field = this.#field;
    if (field === 'skippable' || field === 'block') return;
    const isHeader = this.#isHeld && field !== 'checksum' && field !== 'skippable size';
    for (let i = start; i < start + size; i++) {
      const byte = chunk[i]!;
      if (isHeader) this.#header[this.#headerSize++] = byte;
      this.#value = (this.#value | (byte << this.#shift)) >>> 0;
      this.#shift += 8;
    }
  }

  #begin(field: Field, size: number): void {
    this.#field = field;
    this.#left = size;
    this.#value = 0;
    this.#shift = 0;
    if (field === 'magic') this.#headerSize = 0;
    else if (size === 0) this.#endField();
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
      case 'frame header':
        this.#checkHeader();
        this.#begin('block header', BLOCK_HEADER_BYTES);
        break;
      case 'block header':
        this.#beginBlock(value);
        break;
      case 'block':
        this.#endBlock();
        break;
      case 'checksum':
        if (this.#isHeld && value !== EMPTY_CHECKSUM) throw new Error('the checksum of an empty zstd frame is wrong');
        this.#begin('magic', MAGIC_BYTES);
        break;
      case 'skippable size':
        this.#begin('skippable', value);
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

  /** Begins the rest of a frame's header after its descriptor: the window, the dictionary's ID, the size of the content. */
  #beginHeader(descriptor: number): void {
    this.#hasChecksum = (descriptor & 0x04) !== 0;
    const { windowBytes, idBytes, contentSizeBytes } = headerSizes(descriptor);
    this.#begin('frame header', windowBytes + idBytes + contentSizeBytes);
  }

  #checkHeader(): void {
    const header = this.#header;
    const { windowBytes, idBytes } = headerSizes(header[MAGIC_BYTES]!);
    const id = MAGIC_BYTES + 1 + windowBytes;
    for (let i = id; i < id + idBytes; i++) {
      if (header[i] !== 0) throw new UnsupportedFrame('a zstd frame needs a dictionary; pack it without one');
    }
    const window = windowBytes === 0 ? this.#contentSize()! : windowSize(header[MAGIC_BYTES + 1]!);
    if (window <= WINDOW_MAX_BYTES) return;
    const mebibytes = Math.ceil(window / 2 ** 20);
    throw new UnsupportedFrame(
      `a zstd frame has a window of ${mebibytes} MiB, at most ${WINDOW_MAX_BYTES / 2 ** 20} are possible; pack it with --long=27 or less`,
    );
  }

  /** Size of the frame's content according to its header, in bytes; undefined if the header does not contain it. */
  #contentSize(): number | undefined {
    const { windowBytes, idBytes, contentSizeBytes } = headerSizes(this.#header[MAGIC_BYTES]!);
    if (contentSizeBytes === 0) return undefined;
    const at = MAGIC_BYTES + 1 + windowBytes + idBytes;
    let size = 0;
    for (let i = contentSizeBytes - 1; i >= 0; i--) size = size * 256 + this.#header[at + i]!;
    // A size of two bytes is stored less 256.
    return contentSizeBytes === 2 ? size + 256 : size;
  }

  #beginBlock(header: number): void {
    const kind = (header >>> 1) & 3;
    if (kind === RESERVED_BLOCK) throw new Error('a zstd block is of no known kind');
    this.#isLastBlock = (header & 1) !== 0;
    const size = header >>> 3;
    if (this.#isHeld) {
      const isEmpty = this.#isLastBlock && kind === RAW_BLOCK && size === 0 && (this.#contentSize() ?? 0) === 0;
      if (!isEmpty) this.#isHeld = false;
    }
    this.#begin('block', kind === RLE_BLOCK ? 1 : size);
  }

  #endBlock(): void {
    if (!this.#isLastBlock) this.#begin('block header', BLOCK_HEADER_BYTES);
    else if (this.#hasChecksum) this.#begin('checksum', CHECKSUM_BYTES);
    else this.#begin('magic', MAGIC_BYTES);
  }
}

/** Sizes of a frame header's fields, in bytes. */
function headerSizes(descriptor: number): { windowBytes: number; idBytes: number; contentSizeBytes: number } {
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >>> 6;
  return {
    windowBytes: isSingleSegment ? 0 : 1,
    idBytes: DICTIONARY_ID_BYTES[descriptor & 3]!,
    contentSizeBytes: sizeFlag === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[sizeFlag]!,
  };
}

/** Returns the window size for a window descriptor, in bytes. */
function windowSize(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >>> 3));
  return base + (base / 8) * (descriptor & 7);
}
