/**
 * What one worker of a build does, in whatever thread it runs: one of them trains the dictionary, then all scan parts, and then they sort
 * and encode partitions.
 */
import { join } from 'node:path';
import { decodeDictionary } from '../index/writer.ts';
import type { VocabularyScope } from '../record/vocabulary.ts';
import { catalogOf } from './catalog.ts';
import { type EncodedUnit, UnitEncoder, type UnitPlan } from './encode-unit.ts';
import type { DropPart } from './manifest.ts';
import { RankSet } from './rank-set.ts';
import { trainDictionary } from './sample.ts';
import { type PartOutcome, PartScanner } from './scan-part.ts';
import { type SpillFile, SpillWriter } from './spill.ts';

/** What a worker starts with; plain data, so that it can cross to a thread. */
export interface WorkerSetup {
  readonly number: number;
  readonly drop: string;
  readonly tempDir: string;
  readonly scope: VocabularyScope;
  readonly parts: readonly DropPart[];
  readonly partitionBits: number;
  readonly ranks: SharedArrayBuffer;
  /** One number for each worker: bytes of the drop that it has read. */
  readonly progress: SharedArrayBuffer;
}

/** What a worker has after the first half. */
export interface ScanResult {
  readonly file: SpillFile;
  /** Of the file. */
  readonly sizeBytes: number;
  readonly maxAnswerSizeBytes: number;
}

/** The second half's plan, the same for all workers. */
export interface EncodePlan {
  readonly files: readonly SpillFile[];
  readonly units: UnitPlan;
}

/** One worker, here or in a thread. Calls come one at a time. */
export interface BuildWorker {
  /** Trains the dictionary; its bytes, as in the index's section. */
  train(): Promise<Uint8Array>;
  /** Begins the first half, with the dictionary's bytes. */
  beginScan(dictionary: Uint8Array): Promise<void>;
  scan(part: number): Promise<PartOutcome>;
  /** Ends the first half. */
  finishScan(): Promise<ScanResult>;
  planEncoding(plan: EncodePlan): Promise<void>;
  encodeUnit(unit: number): Promise<EncodedUnit>;
  close(): Promise<void>;
}

/** The worker itself, in the thread of whoever makes it. */
export class LocalWorker implements BuildWorker {
  readonly #setup: WorkerSetup;
  readonly #progress: Float64Array;
  #spill: SpillWriter | undefined;
  #scanner: PartScanner | undefined;
  #encoder: UnitEncoder | undefined;

  constructor(setup: WorkerSetup) {
    this.#setup = setup;
    this.#progress = new Float64Array(setup.progress);
  }

  async train(): Promise<Uint8Array> {
    return await trainDictionary(this.#setup);
  }

  async beginScan(dictionary: Uint8Array): Promise<void> {
    const { drop, tempDir, scope, number, partitionBits, ranks } = this.#setup;
    this.#spill = new SpillWriter(join(tempDir, `records-${number}`), partitionBits);
    this.#scanner = new PartScanner(
      {
        drop,
        tempDir,
        scope,
        dictionary: decodeDictionary(dictionary),
        catalog: catalogOf(scope),
        ranks: new RankSet(ranks),
      },
      this.#spill,
    );
  }

  async scan(part: number): Promise<PartOutcome> {
    const { number, parts } = this.#setup;
    return await this.#scanner!.scan(part, parts[part]!, (sizeBytes) => {
      this.#progress[number] = this.#progress[number]! + sizeBytes;
    });
  }

  async finishScan(): Promise<ScanResult> {
    const spill = this.#spill!;
    const { maxAnswerSizeBytes } = this.#scanner!;
    const file = spill.finish();
    const { sizeBytes } = spill;
    this.#spill = undefined;
    this.#scanner = undefined;
    return { file, sizeBytes, maxAnswerSizeBytes };
  }

  async planEncoding(plan: EncodePlan): Promise<void> {
    this.#encoder = new UnitEncoder(plan.files, plan.units);
  }

  async encodeUnit(unit: number): Promise<EncodedUnit> {
    return this.#encoder!.encode(unit);
  }

  async close(): Promise<void> {
    this.#scanner?.stop();
    this.#spill?.discard();
    this.#spill = undefined;
  }
}
