/** Writes small index files for tests, straight through the index's own writer. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { UNICODE_VERSION } from '../../src/domain/normalize.ts';
import {
  type Catalog,
  compareDomains,
  DictionaryTrainer,
  fieldsFromEntry,
  hashKeyA,
  hashKeyB,
  IndexWriter,
  type Metadata,
  PartitionBuilder,
  planLineCount,
  RecordEncoder,
  RecordFields,
} from '../../src/index/writer.ts';
import { parseEntry } from '../../src/record/entry.ts';
import {
  FILTERING_TAXONOMY_VERSION,
  filteringCategories,
  IAB_TAXONOMY_VERSION,
  iabPaths,
} from '../../src/record/taxonomy.ts';
import { pageTypes, VOCABULARY_NAME, VOCABULARY_VERSION } from '../../src/record/vocabulary.ts';

/** One line of a drop, as an object. */
export type EntryInput = { readonly domain: string; readonly [field: string]: unknown };

export const catalog: Catalog = {
  vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION, pageTypes: pageTypes().map((type) => type.name) },
  iab: { version: IAB_TAXONOMY_VERSION, names: iabPaths },
  filtering: { version: FILTERING_TAXONOMY_VERSION, names: filteringCategories },
};

interface Encoded {
  readonly hashA: number;
  readonly hashB: number;
  readonly bytes: Uint8Array;
}

/** Writes an index of these entries to `path`, which must not exist. Throws on an entry that a builder would reject. */
export function writeIndex(path: string, entries: readonly EntryInput[], metadata: Partial<Metadata> = {}): void {
  const parsed = entries.map((entry) => {
    const { entry: read, rejects } = parseEntry(Buffer.from(JSON.stringify(entry)));
    if (read === undefined || rejects.length > 0) throw new Error(`${entry.domain}: ${JSON.stringify(rejects)}`);
    return read;
  });
  const fields = new RecordFields();
  const trainer = new DictionaryTrainer(catalog);
  for (const entry of parsed) {
    fieldsFromEntry(entry, fields);
    trainer.add(fields);
  }
  const dictionary = trainer.train();
  const encoder = new RecordEncoder(dictionary, catalog);
  const encoded = parsed.map((entry): Encoded => {
    const key = Buffer.from(entry.domain, 'latin1');
    fieldsFromEntry(entry, fields);
    const size = encoder.encode(fields);
    return {
      hashA: hashKeyA(key, 0, key.length),
      hashB: hashKeyB(key, 0, key.length),
      bytes: encoder.out.slice(0, size),
    };
  });
  encoded.sort((a, b) => a.hashA - b.hashA || a.hashB - b.hashB || compareDomains(a.bytes, 0, b.bytes, 0));
  const lineCount = planLineCount(encoded.length);
  const partition = new PartitionBuilder(0, lineCount, lineCount);
  for (const { hashA, hashB, bytes } of encoded) partition.add(hashA, hashB, bytes, 0, bytes.length);
  mkdirSync(dirname(path), { recursive: true });
  const writer = new IndexWriter(path, dictionary, lineCount);
  writer.appendPartition(partition.finish());
  writer.finish({
    dataset: 'test',
    revision: 1,
    created: '2026-01-01T00:00:00Z',
    generation: 1,
    manifestSha256: '0'.repeat(64),
    pageTypesComplete: true,
    ...catalog,
    unicodeVersion: UNICODE_VERSION,
    generator: 'pagegate-test',
    maxAnswerSizeBytes: encoder.maxAnswerSizeBytes,
    ...metadata,
  });
}
