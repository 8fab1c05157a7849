/** The messages between a build and its workers. Plain data, so that they can be passed between threads. */
import type { DropPart } from '../../drop/manifest.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from '../../index/verify.ts';
import type { VocabularyScope } from '../../record/vocabulary.ts';
import type { ArrangedRun, RunPlan } from '../arrange/run-arranger.ts';
import type { SpillFile } from '../arrange/spill.ts';
import type { SharedBlocks } from '../scan/block-queue.ts';
import type { ScanOutcome } from '../scan/part-scanner.ts';

/** The setup of a worker. */
export interface WorkerSetup {
  readonly number: number;
  readonly drop: string;
  readonly tempDir: string;
  readonly scope: VocabularyScope;
  readonly parts: readonly DropPart[];
  readonly partitionBits: number;
  readonly ranks: SharedArrayBuffer;
  readonly blocks: SharedBlocks;
  /** A 64-bit float for each worker: bytes of the drop that it has read. */
  readonly progress: SharedArrayBuffer;
}

/** The result of a worker's first half. */
export interface ScanResult {
  readonly outcome: ScanOutcome;
  readonly file: SpillFile;
  /** Size of `file`. */
  readonly sizeBytes: number;
  readonly maxAnswerSizeBytes: number;
}

/** The plan of the second half, the same for all workers. */
export interface ArrangePlan {
  readonly files: readonly SpillFile[];
  readonly runs: RunPlan;
}

/** A worker, in the caller's thread or in its own. Make only one call at a time. */
export interface BuildWorker {
  /** Trains the dictionary. Returns its bytes, as in the index's section. */
  train(): Promise<Uint8Array>;
  /** Begins the first half, with the dictionary's bytes. */
  beginScan(dictionary: Uint8Array): Promise<void>;
  /** Scans the drop together with the other workers. Resolves when all of it is scanned, at the end of the first half. */
  scan(): Promise<ScanResult>;
  /** Begins the second half. */
  beginArranging(plan: ArrangePlan): Promise<void>;
  arrange(run: number): Promise<ArrangedRun>;
  /** Walks buckets of the finished index. Returns undefined if it finds any damage. */
  walk(setup: VerifySetup, buckets: BucketRange): Promise<IntactBuckets | undefined>;
  close(): Promise<void>;
}

/** A call to a worker in its own thread: the step and its arguments. */
export interface WorkerCall {
  readonly step: Exclude<keyof BuildWorker, 'close'>;
  readonly args: readonly unknown[];
}
