/** What a build and its workers say to each other: plain data, so that it can cross to a thread. */
import type { DropPart } from '../../drop/manifest.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from '../../index/verify.ts';
import type { VocabularyScope } from '../../record/vocabulary.ts';
import type { ArrangedRun, RunPlan } from '../arrange/run-arranger.ts';
import type { SpillFile } from '../arrange/spill.ts';
import type { SharedBlocks } from '../scan/block-queue.ts';
import type { ScanOutcome } from '../scan/part-scanner.ts';

/** What a worker starts with. */
export interface WorkerSetup {
  readonly number: number;
  readonly drop: string;
  readonly tempDir: string;
  readonly scope: VocabularyScope;
  readonly parts: readonly DropPart[];
  readonly partitionBits: number;
  readonly ranks: SharedArrayBuffer;
  readonly blocks: SharedBlocks;
  /** One number for each worker: bytes of the drop that it has read. */
  readonly progress: SharedArrayBuffer;
}

/** What a worker has after the first half. */
export interface ScanResult {
  readonly outcome: ScanOutcome;
  readonly file: SpillFile;
  /** Size of the file. */
  readonly sizeBytes: number;
  readonly maxAnswerSizeBytes: number;
}

/** The second half's plan, the same for all workers. */
export interface ArrangePlan {
  readonly files: readonly SpillFile[];
  readonly runs: RunPlan;
}

/** One worker, in the caller's thread or in its own. Calls come one at a time. */
export interface BuildWorker {
  /** Trains the dictionary; its bytes, as in the index's section. */
  train(): Promise<Uint8Array>;
  /** Begins the first half, with the dictionary's bytes. */
  beginScan(dictionary: Uint8Array): Promise<void>;
  /** Scans the drop together with the other workers; ends when all of it is scanned, and the first half with it. */
  scan(): Promise<ScanResult>;
  /** Begins the second half. */
  beginArranging(plan: ArrangePlan): Promise<void>;
  arrange(run: number): Promise<ArrangedRun>;
  /** Walks buckets of the finished index; undefined where anything is wrong with them. */
  walk(setup: VerifySetup, buckets: BucketRange): Promise<IntactBuckets | undefined>;
  close(): Promise<void>;
}

/** A call of a worker in a thread of its own: one of its steps, and what that is given. */
export interface WorkerCall {
  readonly step: Exclude<keyof BuildWorker, 'close'>;
  readonly given: readonly unknown[];
}
