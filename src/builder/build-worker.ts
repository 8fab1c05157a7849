/** What one worker of a build does, in whatever thread it runs: first it scans parts, then it sorts and encodes partitions. */
import { join } from 'node:path';
import { decodeDictionary } from '../index/writer.ts';
import type { VocabularyScope } from '../record/vocabulary.ts';
import { catalogOf } from './catalog.ts';
import { type EncodedUnit, UnitEncoder, type UnitPlan } from './encode-unit.ts';
import type { DropPart } from './manifest.ts';
import { RankSet } from './rank-set.ts';
import { type PartOutcome, PartScanner } from './scan-part.ts';
import { type SpillFile, SpillWriter } from './spill.ts';

/** What a worker starts with; plain data, so that it can cross to a thread. */
export interface WorkerSetup {
  readonly number: number;
  readonly drop: string;
  readonly tempDir: string;
  readonly scope: VocabularyScope;
  readonly parts: readonly DropPart[];
  /** As in the index's section. */
  readonly dictionary: Uint8Array;
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
    this.#spill = new SpillWriter(join(setup.tempDir, `records-${setup.number}`), setup.partitionBits);
    const { drop, tempDir, scope } = setup;
    const dictionary = decodeDictionary(setup.dictionary);
    const ranks = new RankSet(setup.ranks);
    this.#scanner = new PartScanner(
      { drop, tempDir, scope, dictionary, catalog: catalogOf(scope), ranks },
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
    const file = this.#spill!.finish();
    const { sizeBytes } = this.#spill!;
    const { maxAnswerSizeBytes } = this.#scanner!;
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
    this.#spill?.finish();
    this.#spill = undefined;
  }
}
