/** Trains the dictionary with a sample of the drop. The same drop gives the same sample on every machine. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type LineSink, LineSplitter } from '../../drop/line-splitter.ts';
import type { DropPart } from '../../drop/manifest.ts';
import { isPacked, readPart } from '../../drop/part-reader.ts';
import { DictionaryTrainer, encodeDictionary, fieldsFromEntry, RecordFields } from '../../index/write.ts';
import { parseEntry } from '../../record/entry.ts';
import { recordNames } from '../../record/names.ts';
import type { VocabularyScope } from '../../record/vocabulary.ts';
import { FastScanner } from './fast-scanner.ts';

/**
 * Size of the sample over all parts: one of `SAMPLE_SHARE` entries, within these limits. With half as many, an index of a million records is
 * 0.02 % larger. Training takes a twentieth of its build time.
 */
const SAMPLE_SHARE = 25;
const SAMPLE_ENTRIES_MIN = 40_000;
const SAMPLE_ENTRIES_MAX = 80_000;
/** Maximum number of parts to sample. */
const SAMPLE_PARTS_MAX = 64;
/** Number of places to sample in a plain part. One place is not enough: if lines are in alphabetical order, they vary along the part. */
const PLACES_PER_PART = 8;
const PLACE_BYTES_MAX = 8 << 20;

/** What to sample. Plain data, so that it can be passed to a thread. */
export interface SampleSetup {
  readonly drop: string;
  readonly parts: readonly DropPart[];
  readonly scope: VocabularyScope;
}

class TrainingSink implements LineSink {
  entries = 0;
  readonly #trainer: DictionaryTrainer;
  readonly #scope: VocabularyScope;
  readonly #fields = new RecordFields();
  readonly #scanner: FastScanner;

  constructor(trainer: DictionaryTrainer, scope: VocabularyScope) {
    this.#trainer = trainer;
    this.#scope = scope;
    this.#scanner = new FastScanner(this.#fields, scope);
  }

  line(buffer: Buffer, start: number, end: number): void {
    if (!this.#scanner.scan(buffer, start, end)) {
      const { entry } = parseEntry(buffer.subarray(start, end), this.#scope);
      if (entry === undefined) return;
      fieldsFromEntry(entry, this.#fields);
    }
    this.#trainer.add(this.#fields);
    this.entries += 1;
  }

  overlong(): void {}

  repair(): void {}
}

/**
 * Reads the sample, trains the dictionary and returns its encoded bytes.
 *
 * @throws PagegateError whatever `readPart` throws
 */
export async function trainDictionary({ drop, parts: allParts, scope }: SampleSetup): Promise<Uint8Array> {
  const trainer = new DictionaryTrainer(recordNames(scope));
  const sink = new TrainingSink(trainer, scope);
  const parts = spread(allParts, SAMPLE_PARTS_MAX);
  const records = allParts.reduce((sum, part) => sum + part.records, 0);
  const wanted = Math.min(SAMPLE_ENTRIES_MAX, Math.max(SAMPLE_ENTRIES_MIN, Math.ceil(records / SAMPLE_SHARE)));
  const perPart = Math.ceil(wanted / parts.length);
  for (const part of parts) {
    if (isPacked(part.name)) await samplePacked(drop, part, sink, perPart);
    else samplePlain(drop, part, sink, perPart);
  }
  return encodeDictionary(trainer.train());
}

/** Returns at most `count` of the items: the first one and others, evenly spaced. */
function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)]!);
}

/** Samples the first entries of a packed part, in whole chunks. */
async function samplePacked(drop: string, part: DropPart, sink: TrainingSink, wanted: number): Promise<void> {
  const before = sink.entries;
  const lines = new LineSplitter(sink);
  for await (const chunk of readPart(drop, part)) {
    lines.push(chunk);
    if (sink.entries - before >= wanted) return;
  }
  lines.end();
}

/** Samples complete lines at several places of a plain part. */
function samplePlain(drop: string, part: DropPart, sink: TrainingSink, wanted: number): void {
  if (part.records === 0) return;
  const share = Math.min(1, wanted / part.records);
  const placeBytes = Math.min(PLACE_BYTES_MAX, Math.ceil((part.bytes * share) / PLACES_PER_PART));
  const buffer = Buffer.allocUnsafe(placeBytes);
  const descriptor = openSync(join(drop, part.name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    for (let place = 0; place < PLACES_PER_PART; place++) {
      const offset = Math.floor((part.bytes * place) / PLACES_PER_PART);
      const chunk = buffer.subarray(0, readSync(descriptor, buffer, 0, placeBytes, offset));
      const first = offset === 0 ? 0 : chunk.indexOf(0x0a) + 1;
      const last = chunk.lastIndexOf(0x0a);
      if (last > first) new LineSplitter(sink).push(chunk.subarray(first, last + 1));
    }
  } finally {
    closeSync(descriptor);
  }
}
