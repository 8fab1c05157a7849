/** What a part of a drop can hold, by its size: a manifest that promises more is wrong, and nothing is reserved for it. */
import { LIMITS } from '../../limits.ts';
import { isPacked } from './unpack.ts';

/** What a manifest says of a part. */
interface PartFacts {
  readonly name: string;
  readonly bytes: number;
  readonly records: number;
}

/** What one packed part may unpack to: this for each record that the manifest promises, and a floor for small ones. */
const UNPACKED_PER_RECORD_MAX_BYTES = LIMITS.unpackedRecordBytes.value;
const UNPACKED_FLOOR_BYTES = LIMITS.unpackedFloorBytes.value;
/** Nor does text pack better than this: a few bytes that unpack to gigabytes are not a part, whatever number of records is promised. */
const UNPACKED_PER_BYTE_MAX = 4096;
/** A line that is not blank, and its end. */
const LINE_MIN_BYTES = 2;
/** Frames of a zstd part: each takes some microseconds, so there must be a line for it, but for a few. */
const FRAMES_FLOOR = 1024;

/** What a part may unpack to, in bytes. */
export function unpackedMaxBytes({ name, bytes, records }: PartFacts): number {
  if (!isPacked(name)) return bytes;
  const share = Math.min(records * UNPACKED_PER_RECORD_MAX_BYTES, bytes * UNPACKED_PER_BYTE_MAX);
  return UNPACKED_FLOOR_BYTES + share;
}

/** How many lines can be in a part of that size. The last one needs no end. */
export function recordsMax({ name, bytes }: Omit<PartFacts, 'records'>): number {
  const unpackedBytes = isPacked(name) ? UNPACKED_FLOOR_BYTES + bytes * UNPACKED_PER_BYTE_MAX : bytes;
  return Math.floor((unpackedBytes + 1) / LINE_MIN_BYTES);
}

/** How many zstd frames that unpack to something a part may have. */
export function framesMax({ records }: PartFacts): number {
  return FRAMES_FLOOR + records;
}
