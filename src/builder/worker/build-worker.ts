/**
 * A worker of a build, independent of the thread that it runs in. One worker trains the dictionary. Then all workers scan parts, sort
 * partitions and arrange them into runs of buckets, and finally walk the buckets of the finished index.
 */
import { join } from 'node:path';
import type { BucketRange, BucketWalks, IntactBuckets, VerifySetup } from '../../index/verify.ts';
import { decodeDictionary } from '../../index/write.ts';
import { recordNames } from '../../record/names.ts';
import { type ArrangedRun, RunArranger } from '../arrange/run-arranger.ts';
import { SpillWriter } from '../arrange/spill.ts';
import { BlockQueue } from '../scan/block-queue.ts';
import { trainDictionary } from '../scan/dictionary-sample.ts';
import { PartScanner } from '../scan/part-scanner.ts';
import { RankSet } from '../scan/rank-set.ts';
import type { ArrangePlan, BuildWorker, ScanResult, WorkerSetup } from './worker-messages.ts';

/** A worker in the thread of its creator. */
export class LocalWorker implements BuildWorker {
  readonly #setup: WorkerSetup;
  readonly #progress: Float64Array;
  #spill: SpillWriter | undefined;
  #scanner: PartScanner | undefined;
  #arranger: RunArranger | undefined;
  #walks: BucketWalks | undefined;

  /** Starts no work: each step begins with its call. */
  constructor(setup: WorkerSetup) {
    this.#setup = setup;
    this.#progress = new Float64Array(setup.progress);
  }

  async train(): Promise<Uint8Array> {
    return await trainDictionary(this.#setup);
  }

  async beginScan(dictionary: Uint8Array): Promise<void> {
    const { drop, parts, tempDir, scope, number, partitionBits, ranks, blocks } = this.#setup;
    this.#spill = new SpillWriter(join(tempDir, `records-${number}`), partitionBits);
    this.#scanner = new PartScanner(
      {
        drop,
        parts,
        tempDir,
        worker: number,
        scope,
        dictionary: decodeDictionary(dictionary),
        names: recordNames(scope),
        ranks: new RankSet(ranks),
        queue: new BlockQueue(blocks, number),
      },
      this.#spill,
    );
  }

  async scan(): Promise<ScanResult> {
    const { number } = this.#setup;
    const onBytes = (sizeBytes: number): void => {
      this.#progress[number] = this.#progress[number]! + sizeBytes;
    };
    const outcome = await this.#scanner!.scan({ onBytes, dropsCached: true });
    const spill = this.#spill!;
    const { maxAnswerSizeBytes } = this.#scanner!;
    const file = spill.finish();
    const { sizeBytes } = spill;
    this.#spill = undefined;
    this.#scanner = undefined;
    return { outcome, file, sizeBytes, maxAnswerSizeBytes };
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
      // Only this step needs the module, so load it now.
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
