/**
 * What one worker of a build does, in whatever thread it runs: one of them trains the dictionary, then all scan parts, then they sort
 * partitions and arrange them into runs of buckets, and at the end they walk the buckets of the index.
 */
import { join } from 'node:path';
import type { LineBlock } from '../../drop/line-blocks.ts';
import type { BucketRange, BucketWalks, IntactBuckets, VerifySetup } from '../../index/verify.ts';
import { decodeDictionary } from '../../index/write.ts';
import { recordNames } from '../../record/names.ts';
import { type ArrangedRun, RunArranger } from '../arrange/run-arranger.ts';
import { SpillWriter } from '../arrange/spill.ts';
import { trainDictionary } from '../scan/dictionary-sample.ts';
import { type PartOutcome, PartScanner } from '../scan/part-scanner.ts';
import { RankSet } from '../scan/rank-set.ts';
import type { ArrangePlan, BuildWorker, ScanResult, WorkerSetup } from './worker-messages.ts';

/** The worker itself, in the thread of whoever makes it. */
export class LocalWorker implements BuildWorker {
  readonly #setup: WorkerSetup;
  readonly #progress: Float64Array;
  #spill: SpillWriter | undefined;
  #scanner: PartScanner | undefined;
  #arranger: RunArranger | undefined;
  #walks: BucketWalks | undefined;

  /** Does nothing yet; each step begins with its call. */
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
        worker: number,
        scope,
        dictionary: decodeDictionary(dictionary),
        names: recordNames(scope),
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

  async feed(part: number, block: LineBlock): Promise<number> {
    const records = this.#scanner!.feed(part, this.#setup.parts[part]!, block);
    // Given back now, the memory does not wait for the garbage collector.
    block.bytes.buffer.transfer(0);
    return records;
  }

  async endFeed(part: number): Promise<PartOutcome> {
    return this.#scanner!.endFeed(part, this.#setup.parts[part]!);
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

  async beginArranging(plan: ArrangePlan): Promise<void> {
    this.#arranger = new RunArranger(plan.files, plan.runs);
  }

  async arrange(run: number): Promise<ArrangedRun> {
    return this.#arranger!.arrange(run);
  }

  async walk(setup: VerifySetup, buckets: BucketRange): Promise<IntactBuckets | undefined> {
    if (this.#walks === undefined) {
      this.#arranger = undefined;
      // What only this step needs is loaded when it begins.
      const { BucketWalks } = await import('../../index/verify.ts');
      this.#walks = new BucketWalks(setup);
    }
    return this.#walks.walk(buckets);
  }

  async close(): Promise<void> {
    this.#scanner?.stop();
    this.#spill?.discard();
    this.#spill = undefined;
  }
}
