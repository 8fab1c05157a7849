/**
 * Cuts a zstd file into its frames, from their headers alone (RFC 8878, section 3.1). A file may hold any number of frames, one behind the
 * other; Node's decompressor drops what comes after a frame in the bytes that it was given together (nodejs/node#64741), so it gets them
 * apart. This can go once the pinned Node.js reads two frames of one write.
 *
 * Frames that unpack to nothing, and those for other programs, are not given to the decompressor at all: a million of them would take it a
 * minute.
 */

const FRAME_MAGIC = 0xfd2f_b528;
/** Frames for other programs, with sixteen magic numbers; they unpack to nothing. */
const SKIPPABLE_MAGIC = 0x184d_2a50;
const MAGIC_BYTES = 4;
const SKIPPABLE_SIZE_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
/** Checksum of no bytes: the low half of their XXH64. */
const EMPTY_CHECKSUM = 0x51d8_e999;
/** A frame of no bytes. */
export const EMPTY_FRAME: Uint8Array = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0);
/** By their flags in the frame's descriptor, in bytes. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
const RAW_BLOCK = 0;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;
/** Everything of a frame before the content of its first block. */
const HEADER_MAX_BYTES = MAGIC_BYTES + 1 + 1 + 4 + 8 + BLOCK_HEADER_BYTES;
/** The decompressor takes no larger window: so much memory it needs for each frame. */
const WINDOW_MAX_BYTES: number = 2 ** 27;

/** A frame is what RFC 8878 allows, and not what this program unpacks; its maker can pack it otherwise. */
export class UnsupportedFrame extends Error {}

/** What is being read; of those before `skippable` the value counts. */
type Field =
  | 'magic'
  | 'descriptor'
  | 'frame header'
  | 'block header'
  | 'checksum'
  | 'skippable size'
  | 'skippable'
  | 'block';

/** Walks through a file, chunk by chunk. */
export class ZstdFrames {
  /** Frames so far that unpack to something. */
  count = 0;
  /** What the decompressor must be given of the bytes that `advance` went over; they lie within one frame. */
  pieces: Uint8Array[] = [];
  #field: Field = 'magic';
  /** Bytes of the field that have not come yet. */
  #left = MAGIC_BYTES;
  /** The field's bytes so far, little-endian; of a frame header it is of no use. */
  #value = 0;
  #shift = 0;
  #hasChecksum = false;
  #isLastBlock = false;
  /** The frame's header as far as it was read; its size is 0 once the frame is given away, or known to be empty. */
  readonly #header: Uint8Array = new Uint8Array(HEADER_MAX_BYTES);
  #headerSize = 0;
  #isHeld = true;

  /** True before the first frame and after each: here the file may end. */
  get isBetweenFrames(): boolean {
    return this.#field === 'magic' && this.#left === MAGIC_BYTES;
  }

  /**
   * Goes on in `chunk` from `start`: to the end of the frame, or of the chunk where the frame is longer. Returns the offset after it.
   *
   * @throws UnsupportedFrame for a dictionary, or a window above `WINDOW_MAX_BYTES`
   * @throws Error where what begins there is not a frame
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
        // Nearly always the whole header came with this chunk.
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

  /** Keeps what is needed of a field's bytes. */
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

  /** What is left of a frame's header after its descriptor: the window, the dictionary's id, the size of the content. */
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

  /** Size of the frame's content as its header says, in bytes; undefined where it does not. */
  #contentSize(): number | undefined {
    const { windowBytes, idBytes, contentSizeBytes } = headerSizes(this.#header[MAGIC_BYTES]!);
    if (contentSizeBytes === 0) return undefined;
    const at = MAGIC_BYTES + 1 + windowBytes + idBytes;
    let size = 0;
    for (let i = contentSizeBytes - 1; i >= 0; i--) size = size * 256 + this.#header[at + i]!;
    // Two bytes begin where one ends.
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

/** Window size of a frame that has a window descriptor, in bytes. */
function windowSize(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >>> 3));
  return base + (base / 8) * (descriptor & 7);
}
