/**
 * Writes an index. A builder uses it in these steps:
 *
 * 1. Train: `const trainer = new DictionaryTrainer(names)`, `trainer.add(fields)` for a sample, `trainer.train()`. Pass the bytes of
 *    `encodeDictionary` to the writer and to other threads, which get the same dictionary from `decodeDictionary`.
 * 2. Encode, in any thread: fill a `RecordFields` (with byte ranges of a line of a drop, or with `fieldsFromEntry`). Then
 *    `encoder.encode(fields)` returns a size, and the bytes are in `encoder.out`. `hashKeyA` and `hashKeyB` hash the domain.
 *    Keep (hashA, hashB, bytes). Two records have the same domain if both hashes are equal and `compareDomains` returns 0.
 *    The largest `encoder.maxAnswerSizeBytes` of all threads goes into the metadata.
 * 3. `planBucketCount(records kept)` returns the number of buckets. From 256 on it is a multiple of 256, so that the records whose hash
 *    begins with the eight bits p fill exactly the buckets [p × buckets / 256, (p + 1) × buckets / 256).
 * 4. Begin to write: `new IndexWriter(path, dictionary, metadata, bucketCount)`. Pass its `salt` to all threads.
 * 5. Arrange, in any thread: add the records of a range of buckets to a `BucketRunBuilder`, in the order of (hashA, hashB, encoded domain).
 * 6. Write: `IndexWriter.append` in the order of the buckets, then `finish()`. The builder verifies and renames the file.
 */
export { type Dictionary, decodeDictionary, encodeDictionary } from './format/dictionary.ts';
export { hashKeyA, hashKeyB } from './format/key-hash.ts';
export { BUCKET_COUNT_MULTIPLE, INHERITED_ORIGIN, planBucketCount, RECORDS_MAX } from './format/layout.ts';
export type { Metadata } from './format/metadata.ts';
export { type BucketRun, BucketRunBuilder, compareDomains } from './write/bucket-run.ts';
export { DictionaryTrainer } from './write/dictionary-trainer.ts';
export { IndexWriter } from './write/index-writer.ts';
export { RecordEncoder } from './write/record-encoder.ts';
export { fieldsFromEntry, NO_TEMPLATE, RecordFields, TEMPLATE_UNKNOWN } from './write/record-fields.ts';
