/**
 * Writes an index. How a builder uses this room:
 *
 * 1. Train: `const trainer = new DictionaryTrainer(catalog)`, `trainer.add(fields)` for a sample, `trainer.train()`. The bytes of
 *    `encodeDictionary` go to other threads, which get the same dictionary from `decodeDictionary`.
 * 2. Encode, in any thread: fill a `RecordFields` (byte ranges of a line, or `fieldsFromEntry`), then
 *    `encoder.encode(fields)` gives a size and the bytes are in `encoder.out`. `hashKeyA` and `hashKeyB` hash the domain.
 *    Keep (hashA, hashB, bytes). Two records are of the same domain when both hashes are equal and `compareDomains` gives 0.
 *    The largest `encoder.maxAnswerSizeBytes` of all threads belongs into the metadata.
 * 3. `planLineCount(records kept)` gives the number of lines. With at least 256 of them it is a multiple of 256, so that the records with
 *    the first eight hash bits p fill exactly the lines [p × lines / 256, (p + 1) × lines / 256).
 * 4. Arrange, in any thread: a `PartitionBuilder` for a range of lines takes its records in the order of (hashA, hashB, encoded domain).
 * 5. Write: `IndexWriter.appendPartition` in the order of the lines, `finish(metadata)`; the builder verifies and renames the file.
 */
import { closeSync, fchmodSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { PagegateError } from '../errors.ts';
import { BlockChecksums, xxh64 } from './checksum.ts';
import { type Dictionary, encodeDictionary } from './dictionary.ts';
import { encodeHeader, type Section } from './header.ts';
import {
  alignSection,
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  FORMAT_MAJOR,
  FORMAT_MINOR,
  HEADER_SIZE_BYTES,
  LINE_SIZE_BYTES,
  LINES_MAX,
  PAYLOAD_MAX_BYTES,
} from './layout.ts';
import { readLineBase, sealLine } from './line.ts';
import { encodeMetadata, type Metadata } from './metadata.ts';
import type { Partition } from './partition.ts';

export { ByteKey, ByteMap } from './byte-map.ts';
export type { Catalog } from './catalog.ts';
export { type Dictionary, decodeDictionary, encodeDictionary } from './dictionary.ts';
export { hashKeyA, hashKeyB } from './key-hash.ts';
export { INHERITED_ORIGIN, PARTITIONS, planLineCount } from './layout.ts';
export type { Metadata } from './metadata.ts';
export { compareDomains, type Partition, PartitionBuilder } from './partition.ts';
export { RecordEncoder } from './record-encoder.ts';
export { fieldsFromEntry, NO_SHAPE, RecordFields, SHAPE_UNKNOWN } from './record-fields.ts';
export { DictionaryTrainer } from './train.ts';

const WRITTEN_MODE = 0o444;

/** Writes one index file, front to back but for the directory's place and the header, which comes last. */
export class IndexWriter {
  readonly path: string;
  readonly #fd: number;
  readonly #dictionary: Section;
  readonly #directory: Section;
  readonly #payloadOffset: number;
  readonly #lineCount: number;
  readonly #directoryBlocks = new BlockChecksums(BLOCK_SIZE_BYTES);
  readonly #payloadBlocks = new BlockChecksums(BLOCK_SIZE_BYTES);
  #nextLine = 0;
  #payloadSize = 0;
  #recordCount = 0;
  #isOpen = true;

  /** Creates the file at `path`, which must not exist: a temporary name, so that only a finished index gets its own. */
  constructor(path: string, dictionary: Dictionary, lineCount: number) {
    if (lineCount < 1 || lineCount > LINES_MAX) {
      throw new PagegateError('index_limit', `${lineCount} lines are needed, at most ${LINES_MAX} are possible.`);
    }
    this.path = path;
    this.#lineCount = lineCount;
    const bytes = encodeDictionary(dictionary);
    this.#dictionary = { offset: alignSection(HEADER_SIZE_BYTES), size: bytes.length, checksum: xxh64(bytes) };
    const directoryOffset = alignSection(this.#dictionary.offset + bytes.length);
    this.#directory = { offset: directoryOffset, size: lineCount * LINE_SIZE_BYTES, checksum: 0n };
    this.#payloadOffset = alignSection(directoryOffset + this.#directory.size);
    this.#fd = openSync(path, 'wx', 0o600);
    this.#write(bytes, this.#dictionary.offset);
  }

  get recordCount(): number {
    return this.#recordCount;
  }

  /** Appends the next partition; its lines are changed in place (bases become those of the index). */
  appendPartition(partition: Partition): void {
    const { firstLine, lines, payload } = partition;
    const count = lines.length / LINE_SIZE_BYTES;
    if (firstLine !== this.#nextLine || firstLine + count > this.#lineCount) {
      throw new PagegateError(
        'index_out_of_order',
        `Lines [${firstLine}, ${firstLine + count}) came where line ${this.#nextLine} of ${this.#lineCount} was expected.`,
      );
    }
    if (this.#payloadSize + payload.length > PAYLOAD_MAX_BYTES) {
      throw new PagegateError('index_limit', `The payload exceeds ${PAYLOAD_MAX_BYTES} bytes.`);
    }
    for (let i = 0; i < count; i++) {
      const at = i * LINE_SIZE_BYTES;
      sealLine(lines, at, firstLine + i, readLineBase(lines, at) + this.#payloadSize);
    }
    this.#write(lines, this.#directory.offset + firstLine * LINE_SIZE_BYTES);
    this.#write(payload, this.#payloadOffset + this.#payloadSize);
    this.#directoryBlocks.update(lines);
    this.#payloadBlocks.update(payload);
    this.#nextLine += count;
    this.#payloadSize += payload.length;
    this.#recordCount += partition.recordCount;
  }

  /** Writes the remaining sections, then the header; the bytes are on the disk when this returns. Returns the file's size. */
  finish(metadata: Metadata): number {
    if (this.#nextLine !== this.#lineCount) {
      throw new PagegateError(
        'index_out_of_order',
        `Only ${this.#nextLine} of ${this.#lineCount} lines were appended.`,
      );
    }
    const checksums = [...this.#directoryBlocks.finish(), ...this.#payloadBlocks.finish()];
    const blocks = new Uint8Array(checksums.length * BLOCK_CHECKSUM_SIZE_BYTES);
    const view = new DataView(blocks.buffer);
    checksums.forEach((checksum, i) => {
      view.setBigUint64(i * BLOCK_CHECKSUM_SIZE_BYTES, checksum, true);
    });
    const blocksOffset = alignSection(this.#payloadOffset + this.#payloadSize);
    const about = encodeMetadata(metadata);
    const metadataOffset = alignSection(blocksOffset + blocks.length);
    this.#write(blocks, blocksOffset);
    this.#write(about, metadataOffset);
    fsyncSync(this.#fd);
    const fileSizeBytes = metadataOffset + about.length;
    const header = encodeHeader({
      major: FORMAT_MAJOR,
      minor: FORMAT_MINOR,
      fileSizeBytes,
      recordCount: this.#recordCount,
      lineCount: this.#lineCount,
      sections: {
        dictionary: this.#dictionary,
        directory: this.#directory,
        payload: { offset: this.#payloadOffset, size: this.#payloadSize, checksum: 0n },
        blocks: { offset: blocksOffset, size: blocks.length, checksum: xxh64(blocks) },
        metadata: { offset: metadataOffset, size: about.length, checksum: xxh64(about) },
      },
    });
    this.#write(header, 0);
    fchmodSync(this.#fd, WRITTEN_MODE);
    fsyncSync(this.#fd);
    this.#close();
    return fileSizeBytes;
  }

  /** Gives up and removes the file. Safe to call after `finish`, where it does nothing. */
  abort(): void {
    if (!this.#isOpen) return;
    this.#close();
    unlinkSync(this.path);
  }

  #write(bytes: Uint8Array, offset: number): void {
    let done = 0;
    while (done < bytes.length) done += writeSync(this.#fd, bytes, done, bytes.length - done, offset + done);
  }

  #close(): void {
    this.#isOpen = false;
    closeSync(this.#fd);
  }
}
