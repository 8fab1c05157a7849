/** Writes an index file: first the sections, as their contents arrive, and the header last. */
import { closeSync, fchmodSync, fsyncSync, openSync, unlinkSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { writeFully } from '../../platform/write-fully.ts';
import { readBucketBase, sealBucket, writeBucketBase } from '../format/bucket.ts';
import { BlockChecksums, xxh64 } from '../format/checksum.ts';
import { encodeHeader, type Section } from '../format/header.ts';
import {
  alignSection,
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  BUCKET_SIZE_BYTES,
  BUCKETS_MAX,
  FORMAT_MAJOR,
  FORMAT_MINOR,
  HEADER_SIZE_BYTES,
  PAYLOAD_MAX_BYTES,
} from '../format/layout.ts';
import { encodeMetadata, type Metadata } from '../format/metadata.ts';
import { bucketChecksum, saltOf } from '../format/salt.ts';
import type { BucketRun } from './bucket-run.ts';

const WRITTEN_MODE = 0o444;

/** Writes an index file. Payload and directory grow with each run; the header is written last. */
export class IndexWriter {
  readonly path: string;
  /** The salt of the index. All runs must be built with it. */
  readonly salt: number;
  readonly #fd: number;
  readonly #dictionary: Section;
  readonly #directory: Section;
  readonly #payloadOffset: number;
  readonly #bucketCount: number;
  readonly #metadata: Uint8Array;
  readonly #metadataChecksum: bigint;
  readonly #directoryBlocks = new BlockChecksums(BLOCK_SIZE_BYTES);
  readonly #payloadBlocks = new BlockChecksums(BLOCK_SIZE_BYTES);
  #nextBucket = 0;
  #payloadSize = 0;
  #recordCount = 0;
  #isOpen = true;

  /**
   * Creates the file at `path`, which must not exist. Use a temporary name and rename the finished index. `dictionary` is the result of
   * `encodeDictionary`. The dictionary and the metadata are needed first, because they determine the salt of every bucket and record.
   *
   * @throws PagegateError index_limit if no index can have this number of buckets
   */
  constructor(path: string, dictionary: Uint8Array, metadata: Metadata, bucketCount: number) {
    if (bucketCount < 1 || bucketCount > BUCKETS_MAX) {
      throw new PagegateError('index_limit', `${bucketCount} buckets are needed, at most ${BUCKETS_MAX} are possible.`);
    }
    this.path = path;
    this.#bucketCount = bucketCount;
    this.#dictionary = {
      offset: alignSection(HEADER_SIZE_BYTES),
      size: dictionary.length,
      checksum: xxh64(dictionary),
    };
    const directoryOffset = alignSection(this.#dictionary.offset + dictionary.length);
    this.#directory = { offset: directoryOffset, size: bucketCount * BUCKET_SIZE_BYTES, checksum: 0n };
    this.#payloadOffset = alignSection(directoryOffset + this.#directory.size);
    this.#metadata = encodeMetadata(metadata);
    this.#metadataChecksum = xxh64(this.#metadata);
    this.salt = saltOf(this.#dictionary.checksum, this.#metadataChecksum);
    this.#fd = openSync(path, 'wx', 0o600);
    this.#write(dictionary, this.#dictionary.offset);
  }

  /** Number of records appended so far. */
  get recordCount(): number {
    return this.#recordCount;
  }

  /**
   * Appends the next run. Changes its buckets in place: makes bases relative to the payload of the index, and sets the checksums.
   *
   * @throws PagegateError index_out_of_order, index_limit
   */
  append(run: BucketRun): void {
    const { firstBucket, buckets, payload } = run;
    const count = buckets.length / BUCKET_SIZE_BYTES;
    if (firstBucket !== this.#nextBucket || firstBucket + count > this.#bucketCount) {
      throw new PagegateError(
        'index_out_of_order',
        `Buckets [${firstBucket}, ${firstBucket + count}) came where bucket ${this.#nextBucket} of ${this.#bucketCount} was expected.`,
      );
    }
    if (this.#payloadSize + payload.length > PAYLOAD_MAX_BYTES) {
      throw new PagegateError('index_limit', `The payload exceeds ${PAYLOAD_MAX_BYTES} bytes.`);
    }
    for (let i = 0; i < count; i++) {
      const at = i * BUCKET_SIZE_BYTES;
      writeBucketBase(buckets, at, readBucketBase(buckets, at) + this.#payloadSize);
      sealBucket(buckets, at, bucketChecksum(this.salt, firstBucket + i));
    }
    this.#write(buckets, this.#directory.offset + firstBucket * BUCKET_SIZE_BYTES);
    this.#write(payload, this.#payloadOffset + this.#payloadSize);
    this.#directoryBlocks.update(buckets);
    this.#payloadBlocks.update(payload);
    this.#nextBucket += count;
    this.#payloadSize += payload.length;
    this.#recordCount += run.recordCount;
  }

  /**
   * Writes the remaining sections, then the header, and syncs the file. Returns the file size in bytes.
   *
   * @throws PagegateError index_out_of_order if runs are missing
   */
  finish(): number {
    if (this.#nextBucket !== this.#bucketCount) {
      throw new PagegateError(
        'index_out_of_order',
        `Only ${this.#nextBucket} of ${this.#bucketCount} buckets were appended.`,
      );
    }
    const checksums = [...this.#directoryBlocks.finish(), ...this.#payloadBlocks.finish()];
    const blocks = new Uint8Array(checksums.length * BLOCK_CHECKSUM_SIZE_BYTES);
    const view = new DataView(blocks.buffer);
    checksums.forEach((checksum, i) => {
      view.setBigUint64(i * BLOCK_CHECKSUM_SIZE_BYTES, checksum, true);
    });
    const blocksOffset = alignSection(this.#payloadOffset + this.#payloadSize);
    const metadata = this.#metadata;
    const metadataOffset = alignSection(blocksOffset + blocks.length);
    this.#write(blocks, blocksOffset);
    this.#write(metadata, metadataOffset);
    fsyncSync(this.#fd);
    const fileSizeBytes = metadataOffset + metadata.length;
    const header = encodeHeader({
      major: FORMAT_MAJOR,
      minor: FORMAT_MINOR,
      fileSizeBytes,
      recordCount: this.#recordCount,
      bucketCount: this.#bucketCount,
      sections: {
        dictionary: this.#dictionary,
        directory: this.#directory,
        payload: { offset: this.#payloadOffset, size: this.#payloadSize, checksum: 0n },
        blocks: { offset: blocksOffset, size: blocks.length, checksum: xxh64(blocks) },
        metadata: { offset: metadataOffset, size: metadata.length, checksum: this.#metadataChecksum },
      },
    });
    this.#write(header, 0);
    fchmodSync(this.#fd, WRITTEN_MODE);
    fsyncSync(this.#fd);
    this.#close();
    return fileSizeBytes;
  }

  /** Removes the unfinished file. Does nothing after `finish`. */
  abort(): void {
    if (!this.#isOpen) return;
    this.#close();
    unlinkSync(this.path);
  }

  #write(bytes: Uint8Array, offset: number): void {
    writeFully(this.#fd, bytes, 0, bytes.length, offset);
  }

  #close(): void {
    this.#isOpen = false;
    closeSync(this.#fd);
  }
}
