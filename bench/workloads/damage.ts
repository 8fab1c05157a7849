/**
 * `npm run bench -- damage`: how often corruption of an index changes an answer without being detected by the lookup. Only lookups are tested;
 * `verify` compares 64-bit checksums and detects all of it.
 */
import { readFileSync } from 'node:fs';
import { PagegateError } from '../../src/errors.ts';
import { bytesOfBuffer, type Index, NO_RECORD, openIndexBytes } from '../../src/index/read.ts';
import { IndexScan } from '../../src/index/read-all.ts';
import { Random } from '../../tools/random.ts';
import { ensureDrop, ensureIndex, node } from '../data.ts';
import type { BenchOptions, BenchReport, Workload } from '../workload.ts';

/** A small index is enough: damage has the same effects as in a large one. */
const RECORDS_MAX = 100_000;
const TRIES = 50_000;
/** Tries for damage that affects hundreds of records. */
const PAGE_TRIES = 2_000;
const PAGE_SIZE_BYTES = 4096;

/** A range of bytes in the file: [start, end). */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Changes bytes of the file. Returns the changed ranges, each within one section. */
type Damage = (file: Uint8Array, random: Random) => Range[];

/** Counts of the outcomes. */
interface Outcome {
  harmless: number;
  seen: number;
  unseen: number;
}

/** A record of the index with its position in the file. */
interface Located extends Range {
  readonly domain: string;
  readonly bucket: number;
}

/** An index in memory that is damaged and then queried. */
class Patient {
  readonly file: Uint8Array;
  readonly directory: Range;
  readonly payload: Range;
  readonly #index: Index;
  /** All records, in the order of the file. */
  readonly #records: Located[] = [];
  readonly #byBucket: Located[][] = [];
  /** Groups of records of the same size, with at least two each. */
  readonly #sameSize: readonly (readonly Located[])[];
  readonly #bucketSizeBytes: number;
  readonly #expected = new Map<string, string>();
  readonly #out: Buffer;

  constructor(path: string) {
    const bytes = readFileSync(path);
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.file = new Uint8Array(buffer);
    const source = bytesOfBuffer(buffer, path);
    this.#index = openIndexBytes(source);
    this.#out = Buffer.alloc(this.#index.info.maxAnswerSizeBytes);
    const scan = new IndexScan(source);
    const { directory, payload } = scan.sections;
    this.directory = { start: directory.offset, end: directory.offset + directory.size };
    this.payload = { start: payload.offset, end: payload.offset + payload.size };
    this.#bucketSizeBytes = directory.size / scan.info.bucketCount;
    while (scan.nextBucket()) {
      const records: Located[] = [];
      while (scan.nextRecord()) {
        const { domain, bucket, recordOffset: start, recordSizeBytes } = scan;
        records.push({ domain, bucket, start, end: start + recordSizeBytes });
      }
      this.#records.push(...records);
      this.#byBucket.push(records);
    }
    for (const { domain } of this.#records) this.#expected.set(domain, this.#answer(domain));
    const bySize = Map.groupBy(this.#records, ({ start, end }) => end - start);
    this.#sameSize = [...bySize.values()].filter(({ length }) => length > 1);
  }

  /** Damages the index, looks up every key whose bucket or record may have changed, and repairs the index from `healthy`. */
  try(damage: Damage, random: Random, outcome: Outcome, healthy: Uint8Array): void {
    const ranges = damage(this.file, random);
    const buckets = new Set(ranges.flatMap((range) => this.#bucketsOf(range)));
    // If the same record is looked up twice in a row, it is parsed only once. So another one is looked up first.
    const sentinel = (Math.min(...buckets) + this.#byBucket.length - 3) % this.#byBucket.length;
    for (const { domain } of this.#byBucket[sentinel]!) this.#result(domain);
    const results = [...buckets].flatMap((bucket) => this.#byBucket[bucket]!.map(({ domain }) => this.#result(domain)));
    if (results.includes('unseen')) outcome.unseen += 1;
    else if (results.includes('seen')) outcome.seen += 1;
    else outcome.harmless += 1;
    for (const { start, end } of ranges) this.file.set(healthy.subarray(start, end), start);
  }

  #bucketsOf({ start, end }: Range): number[] {
    const isDirectory = start < this.payload.start;
    const bucketAt = (offset: number): number =>
      isDirectory
        ? Math.floor((offset - this.directory.start) / this.#bucketSizeBytes)
        : this.#records[this.#recordAt(offset)]!.bucket;
    const first = bucketAt(start);
    return Array.from({ length: bucketAt(end - 1) - first + 1 }, (_, i) => first + i);
  }

  /** Returns the number of the first record that ends after an offset. */
  #recordAt(offset: number): number {
    let low = 0;
    let high = this.#records.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#records[middle]!.end > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #answer(key: string): string {
    const handle = this.#index.find(key);
    if (handle === NO_RECORD) return '';
    const out = this.#out;
    return out.toString('latin1', 0, this.#index.writeTail(handle, out, this.#index.writeHead(handle, out, 0)));
  }

  #result(key: string): keyof Outcome {
    try {
      return this.#answer(key) === this.#expected.get(key) ? 'harmless' : 'unseen';
    } catch (error) {
      if (error instanceof PagegateError && error.code === 'record_corrupt') return 'seen';
      throw error;
    }
  }

  /** Exchanges two records of the same size. */
  exchange: Damage = (file, random) => {
    const alike = random.pick(this.#sameSize);
    const a = random.pick(alike);
    let b = a;
    while (b === a) b = random.pick(alike);
    const kept = file.slice(a.start, a.end);
    file.copyWithin(a.start, b.start, b.end);
    file.set(kept, b.start);
    return [a, b];
  };
}

/** Returns a random position for `size` bytes in a range. */
function place({ start, end }: Range, size: number, random: Random): Range {
  const at = start + random.below(end - start - size);
  return { start: at, end: at + size };
}

const overwrite =
  (section: Range, sizeMin: number, sizeMax: number): Damage =>
  (file, random) => {
    const range = place(section, sizeMin + random.below(sizeMax - sizeMin + 1), random);
    for (let at = range.start; at < range.end; at++) file[at] = random.below(256);
    return [range];
  };

const zeros =
  (section: Range): Damage =>
  (file, random) => {
    const range = place(section, PAGE_SIZE_BYTES, random);
    file.fill(0, range.start, range.end);
    return [range];
  };

/** Replaces a page by one of another file, or by one from another position. */
const page =
  (section: Range, from: Uint8Array, isMoved: boolean): Damage =>
  (file, random) => {
    const range = place(section, PAGE_SIZE_BYTES, random);
    const source = isMoved ? place(section, PAGE_SIZE_BYTES, random).start : range.start;
    file.set(from.slice(source, source + PAGE_SIZE_BYTES), range.start);
    return [range];
  };

/** Returns an index of the same records except a hundredth of them, like one of a later revision. */
function ensureRevision(options: BenchOptions): Uint8Array {
  const drop = ensureDrop(options, 0.01);
  const path = `${drop}.pgx`;
  node('src/cli.ts', ['build', drop, '--out', path, '--no-rejects', '--generation', '2']);
  return new Uint8Array(readFileSync(path));
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const path = ensureIndex(options);
  const patient = new Patient(path);
  const healthy = patient.file.slice();
  // Millions of errors are created here, and their stack traces are not used.
  Error.stackTraceLimit = 0;
  const later = ensureRevision(options);
  const { directory, payload } = patient;
  const rows = Object.entries<Damage>({
    '1 to 8 bytes of a record, at random': overwrite(payload, 1, 8),
    '9 to 512 bytes of records, at random': overwrite(payload, 9, 512),
    '1 to 8 bytes of a bucket, at random': overwrite(directory, 1, 8),
    '9 to 512 bytes of buckets, at random': overwrite(directory, 9, 512),
    'zeros over 4,096 bytes of records': zeros(payload),
    'zeros over 4,096 bytes of buckets': zeros(directory),
    'records: 4,096 bytes of another place': page(payload, healthy, true),
    'buckets: 4,096 bytes of another place': page(directory, healthy, true),
    'records: the same 4,096 bytes of the next revision': page(payload, later, false),
    'buckets: the same 4,096 bytes of the next revision': page(directory, later, false),
    'two records of one size exchanged': patient.exchange,
  }).map(([what, damage]) => {
    options.log(what);
    const tries = what.includes('4,096') ? PAGE_TRIES : TRIES;
    const outcome: Outcome = { harmless: 0, seen: 0, unseen: 0 };
    const random = new Random(11);
    for (let i = 0; i < tries; i++) patient.try(damage, random, outcome, healthy);
    const unseenPercent = Number(((100 * outcome.unseen) / tries).toFixed(3));
    return { damage: what, tries, ...outcome, 'unseen %': unseenPercent };
  });
  return {
    rows,
    notes: [
      `The index is in memory; after each try every key whose bucket or record was touched is looked up.`,
      'Unseen: at least one lookup gave another answer, or "not found", and no error. Seen: none did, and at least one gave an error.',
    ],
  };
}

export const workload: Workload = {
  name: 'damage',
  description: 'damage that changes an answer unseen',
  recordsMax: RECORDS_MAX,
  run,
};
