/** Small indexes for tests: writes an index of a few entries and returns its bytes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UNICODE_VERSION } from '../../src/domain/host-key.ts';
import { bytesOfBuffer } from '../../src/index/read.ts';
import {
  BucketRunBuilder,
  compareDomains,
  type Dictionary,
  DictionaryTrainer,
  encodeDictionary,
  fieldsFromEntry,
  hashKeyA,
  hashKeyB,
  IndexWriter,
  type Metadata,
  planBucketCount,
  RecordEncoder,
  RecordFields,
} from '../../src/index/write.ts';
import type { Entry } from '../../src/record/entry.ts';
import { type RecordNames, recordNames } from '../../src/record/names.ts';

/** The names of the shipped data. */
export const shippedNames = recordNames('full');

/** So few names that tests can try every bit of an index built with them. */
export const smallNames: RecordNames = {
  vocabulary: recordNames('core').vocabulary,
  iab: { version: 'iab-test', names: ['A', 'A > B', 'C "quoted"'] },
  filtering: { version: 'filtering-test', names: ['News', 'Games', 'Malware'] },
};

export interface TinyIndexOptions {
  readonly names?: RecordNames;
  readonly metadata?: Partial<Metadata>;
  /** Buckets to use instead of the planned number. */
  readonly bucketCount?: number;
  /** Changes the trained dictionary. */
  readonly dictionary?: (trained: Dictionary) => Dictionary;
}

/** Builds an entry from the data that matter to a test, with pages as `{ login: 'https://…' }`. */
export function entryOf(
  domain: string,
  pages: Readonly<Record<string, string>> = {},
  facts: Partial<Entry> = {},
  names: RecordNames = shippedNames,
): Entry {
  const urls = Object.entries(pages)
    .map(([type, url]) => ({ type, ordinal: names.vocabulary.pageTypes.indexOf(type), url }))
    .sort((a, b) => a.ordinal - b.ordinal);
  return { domain, filteringCategories: [], pageTypes: urls, ...facts };
}

/** An index in memory. */
export function bytesInMemory(bytes: Uint8Array): ReturnType<typeof bytesOfBuffer> {
  // A buffer of its own, from offset 0: typed arrays on it need aligned offsets.
  return bytesOfBuffer(Uint8Array.from(bytes).buffer, '<memory>');
}

/** Default metadata of a test index, apart from the names. */
export const tinyMetadata = {
  dataset: 'tiny',
  revision: 1,
  created: '2026-01-01T00:00:00Z',
  generation: 1,
  manifestSha256: '0'.repeat(64),
  pageTypesComplete: true,
  unicodeVersion: UNICODE_VERSION,
  generator: 'pagegate test',
} as const;

/** Writes an index of the entries to `path`, which must not exist. */
export function writeTinyIndex(path: string, entries: readonly Entry[], options: TinyIndexOptions = {}): void {
  const names = options.names ?? shippedNames;
  const fields = new RecordFields();
  const trainer = new DictionaryTrainer(names);
  for (const entry of entries) {
    fieldsFromEntry(entry, fields);
    trainer.add(fields);
  }
  const dictionary = (options.dictionary ?? ((trained) => trained))(trainer.train());
  const encoder = new RecordEncoder(dictionary, names);
  const records = entries.map((entry) => {
    fieldsFromEntry(entry, fields);
    const size = encoder.encode(fields);
    const { source, domainStart, domainEnd } = fields;
    return {
      hashA: hashKeyA(source, domainStart, domainEnd),
      hashB: hashKeyB(source, domainStart, domainEnd),
      bytes: encoder.out.slice(0, size),
    };
  });
  records.sort((a, b) => a.hashA - b.hashA || a.hashB - b.hashB || compareDomains(a.bytes, 0, b.bytes, 0));
  const bucketCount = options.bucketCount ?? planBucketCount(records.length);
  const { maxAnswerSizeBytes } = encoder;
  const metadata = { ...tinyMetadata, ...names, maxAnswerSizeBytes, ...options.metadata };
  const writer = new IndexWriter(path, encodeDictionary(dictionary), metadata, bucketCount);
  const builder = new BucketRunBuilder({ firstBucket: 0, endBucket: bucketCount, bucketCount, salt: writer.salt });
  for (const { hashA, hashB, bytes } of records) builder.add(hashA, hashB, bytes, 0, bytes.length);
  writer.append(builder.finish());
  writer.finish();
}

/** Returns the bytes of such an index. */
export function tinyIndexBytes(entries: readonly Entry[], options: TinyIndexOptions = {}): Uint8Array {
  return withTempDirectory((directory) => {
    const path = join(directory, 'tiny.pgx');
    writeTinyIndex(path, entries, options);
    return Uint8Array.from(readFileSync(path));
  });
}

/** Runs a task with a new directory, and removes the directory afterwards. */
export function withTempDirectory<T>(task: (directory: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'pagegate-'));
  const clean = (): void => rmSync(directory, { recursive: true, force: true });
  let result: T;
  try {
    result = task(directory);
  } catch (error) {
    clean();
    throw error;
  }
  if (result instanceof Promise) return result.finally(clean) as T;
  clean();
  return result;
}
