/** Limits for the contents of a part, by its size. A manifest that exceeds them is invalid, so that no memory is allocated for it. */
import { LIMITS } from '../../limits.ts';
import { isPacked } from './unpack.ts';

/** The facts about a part in a manifest. */
interface PartFacts {
  readonly name: string;
  readonly bytes: number;
  readonly records: number;
}

/** Maximum unpacked size of a packed part: this for each record in the manifest, plus an allowance for small parts. */
const UNPACKED_PER_RECORD_MAX_BYTES = LIMITS.unpackedRecordBytes.value;
const UNPACKED_FLOOR_BYTES = LIMITS.unpackedFloorBytes.value;
/** Maximum compression ratio of text. Whatever the manifest states, a few bytes that unpack to gigabytes are not a valid part. */
const UNPACKED_PER_BYTE_MAX = 4096;
/** Minimum size of a nonblank line with its line end. */
const LINE_MIN_BYTES = 2;
/** A zstd part may have this many frames more than lines. More are refused, because each takes some microseconds. */
const FRAMES_FLOOR = 1024;

/** Returns the maximum unpacked size of a part, in bytes. */
export function unpackedMaxBytes({ name, bytes, records }: PartFacts): number {
  if (!isPacked(name)) return bytes;
  const share = Math.min(records * UNPACKED_PER_RECORD_MAX_BYTES, bytes * UNPACKED_PER_BYTE_MAX);
  return UNPACKED_FLOOR_BYTES + share;
}

/** Returns the maximum number of lines of a part of this size. The last line needs no line end. */
export function recordsMax({ name, bytes }: Omit<PartFacts, 'records'>): number {
  const unpackedBytes = isPacked(name) ? UNPACKED_FLOOR_BYTES + bytes * UNPACKED_PER_BYTE_MAX : bytes;
  return Math.floor((unpackedBytes + 1) / LINE_MIN_BYTES);
}

/** Returns the maximum number of zstd frames of a part, without empty ones. */
export function framesMax({ records }: PartFacts): number {
  return FRAMES_FLOOR + records;
}
