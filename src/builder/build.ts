/**
 * A build runs these steps in order: manifest → sample → dictionary → scan (parse, normalize, encode, partition by hash) → sort → write →
 * fsync → verify → rename → report. The same drop gives the same bytes, whatever the number of workers.
 */
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { UNICODE_VERSION } from '../domain/host-key.ts';
import { assertFullDrop, checkParts, type Manifest, readManifest } from '../drop/manifest.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import { type BucketRange, type VerifySetup, verifyIndex } from '../index/verify.ts';
import { IndexWriter, type Metadata, planBucketCount, RECORDS_MAX } from '../index/write.ts';
import { renameDurable } from '../platform/durable-files.ts';
import { removeEmptyFolders } from '../platform/folders.ts';
import { abortable, runInOrder, workerCount } from '../platform/threads.ts';
import { recordNames } from '../record/names.ts';
import { PROGRAM_VERSION } from '../version.ts';
import { estimateRecords, planPartitionBits } from './arrange/partitions.ts';
import { planRuns } from './arrange/run-arranger.ts';
import type { SpillFile } from './arrange/spill.ts';
import { checkSpace, estimateTextBytes, SpaceWatch } from './files/disk-space.ts';
import { gatherRejects, publishRejects } from './files/rejects-file.ts';
import { asPathMistake, type BuildTargets, checkOutput, prepareTargets } from './files/targets.ts';
import { removeLeftovers, Workspace } from './files/workspace.ts';
import { type BuildOptions, REJECTS_SUFFIX } from './options.ts';
import { ProgressMeter } from './progress.ts';
import { type BuildReport, ReportDraft } from './report.ts';
import { BlockQueue } from './scan/block-queue.ts';
import { RankSet } from './scan/rank-set.ts';
import type { BuildWorker, ScanResult } from './worker/worker-messages.ts';
import { startWorkers } from './worker/worker-pool.ts';

/** The final verification decodes about this many records at most. */
const DECODED_RECORDS_MAX = 1_000_000;

/** State that all steps of one build share. */
interface Build {
  readonly options: BuildOptions;
  readonly manifest: Manifest;
  readonly targets: BuildTargets;
  readonly workspace: Workspace;
  readonly partitionBits: number;
  readonly meter: ProgressMeter;
  readonly draft: ReportDraft;
}

/**
 * Builds an index from a drop. Invalid lines do not stop it; the report counts them. If it throws, it leaves no files behind, and an index
 * that was at `out` is unchanged.
 *
 * @throws PagegateError if the drop as a whole is invalid, or if the machine cannot complete the build: docs/drop-format.md, "What stops a build"
 */
export async function buildIndex(options: BuildOptions): Promise<BuildReport> {
  const createdFolders: string[] = [];
  try {
    return await prepareAndRun(options, createdFolders);
  } catch (error) {
    removeEmptyFolders(createdFolders);
    throw fromSystem('build_failed', options.out, asPathMistake(error), { noSpaceCode: 'build_no_space' });
  }
}

async function prepareAndRun(options: BuildOptions, createdFolders: string[]): Promise<BuildReport> {
  const { manifest, sha256 } = readManifest(options.drop);
  assertFullDrop(manifest);
  checkParts(options.drop, manifest);
  const records = countRecords(manifest);
  if (records > RECORDS_MAX) {
    const what = `Its manifest promises ${records} lines, an index holds ${RECORDS_MAX} records.`;
    throw new PagegateError('build_too_large', what, { records, most: RECORDS_MAX });
  }
  const parts = manifest.files.map(({ name }) => name);
  const targets = prepareTargets(options, parts, createdFolders);
  const { out, rejects, tempParent } = targets;
  // A killed build may have written its rejects to the default file, even if this build uses another file or none.
  removeLeftovers(tempParent, out, `${out}${REJECTS_SUFFIX}`, ...(rejects === undefined ? [] : [rejects]));
  const tempBytes = await checkSpace(options.drop, manifest, tempParent, dirname(out));
  const workers = workerCount(options.workers);
  const draft = new ReportDraft(options, manifest, sha256, tempBytes);
  draft.workers = workers;
  const workspace = new Workspace(tempParent, out, rejects);
  const meter = new ProgressMeter(options.onProgress);
  try {
    options.onStart?.({ records, parts: manifest.files.length, workers, tempDir: tempParent, tempBytes });
    const partitionBits = planPartitionBits(records, estimateTextBytes(manifest));
    return await run({ options, manifest, targets, workspace, partitionBits, meter, draft });
  } finally {
    meter.close();
    workspace.remove();
  }
}

async function run(build: Build): Promise<BuildReport> {
  const { options, manifest, draft, workspace } = build;
  const scope = options.vocabulary ?? 'full';
  const { drop, signal } = options;
  const parts = manifest.files;
  const progress = new SharedArrayBuffer(8 * Math.max(1, draft.workers));
  let writer: IndexWriter | undefined;
  // Start all workers at once, so that the others are ready when the first one has trained the dictionary.
  const workers = await startWorkers(draft.workers, {
    drop,
    tempDir: workspace.path,
    scope,
    parts,
    partitionBits: build.partitionBits,
    ranks: RankSet.allocate(countRecords(manifest)),
    blocks: BlockQueue.allocate(Math.max(1, draft.workers), parts.length),
    progress,
  });
  try {
    const dictionary = await draft.time('sample', () => abortable(workers[0]!.train(), signal));
    await abortable(Promise.all(workers.map((worker) => worker.beginScan(dictionary))), signal);
    const { files, maxAnswerSizeBytes } = await draft.time('scan', () =>
      scan(build, workers, new Float64Array(progress)),
    );
    const bucketCount = planBucketCount(estimateRecords(files, build.partitionBits));
    const metadata = metadataOf(build, maxAnswerSizeBytes);
    writer = new IndexWriter(workspace.unfinished, dictionary, metadata, bucketCount);
    workspace.claim();
    await draft.time('write', () => writeRuns(build, workers, files, bucketCount, writer!));
    draft.sizeBytes = writer.finish();
    draft.recordCount = writer.recordCount;
    await draft.time('verify', () => verify(build, workers, workspace.unfinished));
    await Promise.all(workers.map((worker) => worker.close()));
    await publish(build, workers.length);
    draft.peakMemoryBytes = build.meter.peakMemoryBytes;
    return draft.finish();
  } catch (error) {
    // Report why the build ended, not what fails during cleanup: the workspace removes what is left.
    await Promise.allSettled(workers.map((worker) => worker.close()));
    try {
      writer?.abort();
    } catch {}
    throw error;
  }
}

/** Moves the finished index and its rejects to their final paths and replaces what was at `out`. Until then, the build can be aborted. */
async function publish({ options, manifest, targets, workspace, draft }: Build, threads: number): Promise<void> {
  const { out, rejects } = targets;
  if (rejects !== undefined) {
    const { path, unfinishedRejects } = workspace;
    draft.rejectsWritten = gatherRejects(path, manifest.files.length, threads, unfinishedRejects);
  }
  // Without threads, the previous steps blocked the event loop. Pending signals are delivered between two turns of it.
  await nextTurn();
  await nextTurn();
  options.signal?.throwIfAborted();
  checkOutput(out, options);
  if (rejects !== undefined) publishRejects(workspace.unfinishedRejects, draft.rejectsWritten, rejects);
  renameDurable(workspace.unfinished, out);
}

const countRecords = (manifest: Manifest): number => manifest.files.reduce((sum, part) => sum + part.records, 0);

/** First half: the workers divide the parts among themselves and scan them. */
async function scan(
  build: Build,
  workers: readonly BuildWorker[],
  progress: Float64Array,
): Promise<{ files: SpillFile[]; maxAnswerSizeBytes: number }> {
  const { manifest, draft, meter, options, workspace, targets } = build;
  const totalBytes = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  meter.start('scan', totalBytes, () => progress.reduce((sum, bytes) => sum + bytes, 0));
  const space = new SpaceWatch(workspace.path, dirname(targets.out));
  let results: readonly ScanResult[];
  try {
    const scanned = abortable(Promise.all(workers.map((worker) => worker.scan())), options.signal);
    results = await Promise.race([scanned, space.exhausted]);
    await space.check();
  } finally {
    space.stop();
  }
  for (const { outcome } of results) draft.addScan(outcome);
  draft.tempUsedBytes = results.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return {
    files: results.map(({ file }) => file),
    maxAnswerSizeBytes: Math.max(...results.map((result) => result.maxAnswerSizeBytes)),
  };
}

/** Second half: the workers arrange runs of buckets; the runs are appended in order. */
async function writeRuns(
  build: Build,
  workers: readonly BuildWorker[],
  files: readonly SpillFile[],
  bucketCount: number,
  writer: IndexWriter,
): Promise<void> {
  const runs = planRuns(build.partitionBits, bucketCount, writer.salt);
  await Promise.all(workers.map((worker) => worker.beginArranging({ files, runs })));
  let done = 0;
  build.meter.start('write', runs.runCount, () => done);
  await runInOrder(
    workers,
    runs.runCount,
    (worker, number) => worker.arrange(number),
    ({ run, duplicates }) => {
      writer.append(run);
      // Free the memory now instead of waiting for the garbage collector.
      for (const { buffer } of [run.buckets, run.payload]) (buffer as ArrayBuffer).transfer(0);
      build.draft.duplicates += duplicates;
      done += 1;
    },
    { signal: build.options.signal, ahead: workers.length + 1 },
  );
}

function metadataOf({ manifest, options, draft }: Build, maxAnswerSizeBytes: number): Metadata {
  return {
    dataset: manifest.dataset,
    revision: manifest.revision,
    created: manifest.created,
    generation: options.generation,
    manifestSha256: draft.manifestSha256,
    pageTypesComplete: manifest.page_types === 'complete',
    ...recordNames(options.vocabulary ?? 'full'),
    unicodeVersion: UNICODE_VERSION,
    generator: `pagegate ${PROGRAM_VERSION}`,
    maxAnswerSizeBytes,
  };
}

/**
 * Checks every checksum and every bucket. Decodes all records of an index of usual size, but only a sample of a large one: decoding all of
 * them takes as long as writing them.
 */
async function verify({ meter, options, draft }: Build, workers: readonly BuildWorker[], path: string): Promise<void> {
  let done = 0;
  let started = false;
  const onProgress = (doneBytes: number, totalBytes: number): void => {
    done = doneBytes;
    if (!started) meter.start('verify', totalBytes, () => done);
    started = true;
  };
  const decodeEveryNthBucket = Math.max(1, Math.ceil(draft.recordCount / DECODED_RECORDS_MAX));
  const report = await verifyIndex(path, {
    onProgress,
    decodeEveryNthBucket,
    // With fewer than two worker threads, the caller's thread verifies alone.
    workers: 0,
    ...(workers.length > 1 && {
      walkers: (setup: VerifySetup) => workers.map((worker) => (buckets: BucketRange) => worker.walk(setup, buckets)),
    }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (report.ok) return;
  const [damage] = report.damages;
  throw new PagegateError('index_corrupt', `What was just written does not verify: ${damage?.where}: ${damage?.what}.`);
}
