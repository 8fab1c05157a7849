/**
 * A refresh, in this order: signature → check of the drop → entitlement → lock → revision → build → verify → number → switch →
 * notify the server → prune → report. Nothing before the switch touches what is served. The switch is one rename.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { INDEX_FILE } from '../config/paths.ts';
import { counted, withCommas } from '../counted.ts';
import { type CheckedDrop, checkDrop } from '../drop/check-drop.ts';
import { MANIFEST_FILE, SIGNATURE_FILE } from '../drop/drop-files.ts';
import { assertFullDrop } from '../drop/manifest.ts';
import type { TrustedKey } from '../drop/signature.ts';
import { PagegateError } from '../errors.ts';
import { writeDurable } from '../platform/durable-files.ts';
import { makeFolder } from '../platform/folders.ts';
import { nextNumber, noteNumber } from './generation-numbers.ts';
import { withStoreLock } from './lock.ts';
import { pruneGenerations } from './prune.ts';
import {
  buildingDirectory,
  commitGeneration,
  type Generation,
  type GenerationReport,
  generationDirectory,
  listGenerations,
  REJECTS_FILE,
  REPORT_FILE,
  rejectsOf,
  removeLitter,
  switchCurrent,
} from './store.ts';
import { readWithdrawn, reinstate, type WithdrawnManifest, withdrawForOlder } from './withdrawn-drops.ts';

/** Read-only, because files of a generation never change. */
const KEPT_MODE = 0o444;

/** The properties that identify an index. */
export interface IndexIdentity {
  readonly dataset: string;
  readonly revision: number;
  readonly manifestSha256: string;
  readonly recordCount: number;
  readonly sizeBytes: number;
}

export interface BuildRequest {
  readonly drop: string;
  readonly out: string;
  readonly generation: number;
  readonly tempDir: string;
  /** Where the rejected lines are written; kept beside the index. */
  readonly rejectsFile: string;
  readonly signal: AbortSignal | undefined;
}

/** The steps that a refresh calls in other modules. `refresh-steps` has the real ones; tests replace them. */
export interface RefreshSteps {
  /**
   * Builds the index file and verifies it.
   *
   * @returns what to store in the generation's report.
   * @throws PagegateError if the drop does not match its manifest
   */
  build(request: BuildRequest): Promise<unknown>;
  /** Opens an index without verifying it, and returns its identity. */
  identify(indexFile: string): IndexIdentity;
  /** Verifies the whole index. @throws PagegateError generation_damaged */
  verify(indexFile: string, signal: AbortSignal | undefined): Promise<IndexIdentity>;
  /** @throws PagegateError if the license does not cover the drop */
  assertEntitled(drop: { dataset: string; manifestSha256: string; created: string }): void;
  /** Notifies a running server and returns the result. */
  notifyServer(generation: number): Promise<ServerNotice>;
  onStep?(step: string): void;
}

export type ServerNotice =
  | { readonly server: 'not_needed' }
  | { readonly server: 'told' }
  | { readonly server: 'not_running' }
  | { readonly server: 'failed'; readonly reason: string };

export interface RefreshOptions {
  readonly drop: string;
  readonly store: string;
  /** Number of generations to keep, including the served one; at least 1. */
  readonly keep: number;
  readonly trustedKeys: readonly TrustedKey[];
  /** The SHA-256 of the expected drop's manifest. If the drop was replaced by another one, it is refused. */
  readonly manifestSha256?: string;
  readonly unsigned?: boolean;
  readonly rollback?: boolean;
  readonly otherDataset?: boolean;
  /** Builds the drop even if it is served or was built before: another version of the program may build another index. */
  readonly rebuild?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The result of a refresh. Generation, drop and size are those of the generation that is served now. */
export interface RefreshReport
  extends Pick<
    GenerationReport,
    'generation' | 'dataset' | 'revision' | 'created' | 'manifestSha256' | 'signedBy' | 'recordCount' | 'sizeBytes'
  > {
  /** `unchanged` if the drop is already served, or was rolled back here. */
  readonly outcome: 'activated' | 'unchanged';
  /** Whether the generation was not built now, but earlier: it was served already, or an interrupted refresh had built it. */
  readonly reused: boolean;
  readonly previousGeneration: number | null;
  /** Number of records served before; null if nothing was served, or another dataset, or if the index cannot be read. */
  readonly previousRecordCount: number | null;
  readonly notice: ServerNotice;
  readonly prunedGenerations: readonly number[];
  /** Set if the drop was rolled back here and is therefore not served. The report is then about the generation that is served instead. */
  readonly withdrawn: WithdrawnManifest | null;
  /** Whether the generation that was rolled back is still kept. */
  readonly withdrawnIsKept: boolean;
  /** Numbers of rejects by reason. They are listed in `rejectsFile`, up to its limit. */
  readonly rejects: Readonly<Record<string, number>>;
  /** Null if nothing was rejected: there is no such file then. */
  readonly rejectsFile: string | null;
  readonly durationMs: number;
}

/** Identifies the served index, even if it was put there by hand and has no report; undefined if it cannot be read. */
function identifyServed(served: Generation | undefined, steps: RefreshSteps): IndexIdentity | undefined {
  if (served === undefined) return undefined;
  try {
    return steps.identify(served.indexFile);
  } catch {
    return undefined;
  }
}

/** Refuses a drop of another dataset, or of a revision that is not newer than the served one, unless the options allow it. */
function checkSuccession(
  drop: CheckedDrop,
  served: Pick<IndexIdentity, 'dataset' | 'revision'> | undefined,
  options: RefreshOptions,
): void {
  const { manifest } = drop;
  if (served !== undefined && served.dataset !== manifest.dataset) {
    if (options.otherDataset === true) return;
    const what = `Served is "${served.dataset}", the drop is "${manifest.dataset}".`;
    throw new PagegateError('drop_other_dataset', what, { served: served.dataset, got: manifest.dataset });
  }
  if (options.rollback === true) return;
  if (served !== undefined && manifest.revision <= served.revision) {
    const what = `Served is revision ${served.revision}, the drop is revision ${manifest.revision}.`;
    throw new PagegateError('drop_older_revision', what, { served: served.revision, got: manifest.revision });
  }
}

/** Refuses an index that was built from another drop: the drop was replaced during the build. */
function checkIndex(index: IndexIdentity, drop: CheckedDrop): void {
  if (index.manifestSha256 === drop.manifestSha256) return;
  const what = `Its manifest had SHA-256 ${drop.manifestSha256}, the index was built from ${index.manifestSha256}.`;
  throw new PagegateError('drop_changed', what);
}

/** Refuses an index without records: it would silently replace a good one. */
function assertNotEmpty({ recordCount }: IndexIdentity, { manifest }: CheckedDrop, build: unknown): void {
  if (recordCount > 0) return;
  const lines = manifest.files.reduce((sum, part) => sum + part.records, 0);
  const reasons = Object.entries(rejectsOf({ build })).map(([reason, count]) => `${reason} ${withCommas(count)}`);
  const why = reasons.length === 0 ? '' : `; left out: ${reasons.join(', ')}`;
  throw new PagegateError('drop_empty', `Its manifest lists ${counted(lines, 'line')}${why}.`, { lines });
}

async function buildGeneration(
  generation: number,
  drop: CheckedDrop,
  options: RefreshOptions,
  steps: RefreshSteps,
): Promise<GenerationReport> {
  const directory = buildingDirectory(options.store, generation);
  const tempDir = join(directory, 'temp');
  const out = join(directory, INDEX_FILE);
  try {
    makeFolder(tempDir, 0o755);
    steps.onStep?.('build');
    const rejectsFile = join(directory, REJECTS_FILE);
    const build = await steps.build({
      drop: options.drop,
      out,
      generation,
      tempDir,
      rejectsFile,
      signal: options.signal,
    });
    await rm(tempDir, { recursive: true, force: true });
    const index = steps.identify(out);
    checkIndex(index, drop);
    assertNotEmpty(index, drop, build);
    const report: GenerationReport = {
      format: 'pagegate-generation/1',
      generation,
      dataset: drop.manifest.dataset,
      revision: drop.manifest.revision,
      created: drop.manifest.created,
      manifestSha256: drop.manifestSha256,
      signedBy: drop.signedBy,
      recordCount: index.recordCount,
      sizeBytes: index.sizeBytes,
      builtAt: new Date().toISOString(),
      build,
    };
    writeDurable(join(directory, MANIFEST_FILE), drop.manifestBytes, KEPT_MODE);
    if (drop.signature !== undefined) writeDurable(join(directory, SIGNATURE_FILE), drop.signature, KEPT_MODE);
    writeDurable(join(directory, REPORT_FILE), `${JSON.stringify(report, null, 2)}\n`, KEPT_MODE);
    noteNumber(options.store, generation);
    commitGeneration(options.store, generation);
    return report;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Finds a generation that an interrupted refresh has built but not activated, if it is intact. Removes one that is damaged. */
async function findFinished(
  drop: CheckedDrop,
  generations: readonly Generation[],
  options: RefreshOptions,
  steps: RefreshSteps,
): Promise<GenerationReport | undefined> {
  const candidate = generations.findLast((one) => !one.current && one.report?.manifestSha256 === drop.manifestSha256);
  if (candidate?.report === undefined || candidate.report.recordCount === 0) return undefined;
  try {
    steps.onStep?.('verify');
    checkIndex(await steps.verify(candidate.indexFile, options.signal), drop);
    return candidate.report;
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    // It cannot be trusted, so it is not kept.
    await rm(generationDirectory(options.store, candidate.generation), { recursive: true, force: true });
    return undefined;
  }
}

/** Checks manifest, signature and license of the drop. Creates nothing. */
function admit(options: RefreshOptions, steps: RefreshSteps): CheckedDrop {
  const drop = checkDrop(options);
  const { manifest, manifestSha256 } = drop;
  if (options.manifestSha256 !== undefined && options.manifestSha256 !== manifestSha256)
    throw new PagegateError('drop_changed', 'Another drop was delivered since this one was looked at.');
  assertFullDrop(manifest);
  steps.assertEntitled({ dataset: manifest.dataset, manifestSha256, created: manifest.created });
  return drop;
}

/** The store's content when a refresh begins. */
interface StoreBefore {
  readonly generations: readonly Generation[];
  readonly served: Generation | undefined;
  /** What is served, according to the index, or to the report if the index cannot be read; undefined if neither can be read. */
  readonly identity: Pick<IndexIdentity, 'dataset' | 'revision' | 'manifestSha256' | 'recordCount'> | undefined;
  /** Whether the index can be read and is the one of its report. */
  readonly isWhole: boolean;
}

/** The generation that is served after a refresh, and how it was activated. */
interface Activation extends Pick<RefreshReport, 'outcome' | 'reused' | 'withdrawn'> {
  readonly served: GenerationReport;
}

const unchanged = (served: GenerationReport, withdrawn: WithdrawnManifest | null = null): Activation => ({
  served,
  outcome: 'unchanged',
  reused: true,
  withdrawn,
});

/** Builds the drop, or reuses what an interrupted refresh has built, and switches to it. Does nothing if the drop is served or was rolled back. */
async function activate(
  drop: CheckedDrop,
  { generations, served, identity, isWhole }: StoreBefore,
  options: RefreshOptions,
  steps: RefreshSteps,
): Promise<Activation> {
  const { store } = options;
  const { manifestSha256 } = drop;
  const mark = readWithdrawn(store).find((one) => one.manifestSha256 === manifestSha256);
  const isServed = identity?.manifestSha256 === manifestSha256;
  // After an upgrade, the program may be unable to read the served index, and a report can be lost. Then the same drop, which a timer
  // delivers again, is built again.
  const mustBuild = isServed && (options.rebuild === true || !isWhole);
  if (isServed && !mustBuild && served?.report !== undefined) return unchanged(served.report);
  if (!isServed) {
    // A timer may deliver a drop that was rolled back again and again. That must not be a failure.
    if (mark !== undefined && options.rollback !== true && served?.report !== undefined)
      return unchanged(served.report, mark);
    checkSuccession(drop, identity, options);
  }
  const finished = mustBuild ? undefined : await findFinished(drop, generations, options, steps);
  const next = nextNumber(store, generations);
  const report = finished ?? (await buildGeneration(next, drop, options, steps));
  if (options.rollback === true && served !== undefined && identity !== undefined)
    withdrawForOlder(store, { ...identity, generation: served.generation }, report);
  steps.onStep?.('switch');
  await switchCurrent(store, report.generation);
  reinstate(store, manifestSha256);
  return { served: report, outcome: 'activated', reused: finished !== undefined, withdrawn: null };
}

async function refreshLocked(
  drop: CheckedDrop,
  options: RefreshOptions,
  steps: RefreshSteps,
  startedMs: number,
): Promise<RefreshReport> {
  const { store } = options;
  await removeLitter(store);
  const generations = listGenerations(store);
  const before = generations.find((one) => one.current);
  const index = identifyServed(before, steps);
  const identity = index ?? before?.report;
  const isWhole = index !== undefined && index.manifestSha256 === before?.report?.manifestSha256;
  const found: StoreBefore = { generations, served: before, identity, isWhole };
  const { served, ...activation } = await activate(drop, found, options, steps);
  const rejects = rejectsOf(served);
  const hasRejects = Object.keys(rejects).length > 0;
  const { generation, dataset, revision, created, manifestSha256, signedBy, recordCount, sizeBytes } = served;
  return {
    ...activation,
    generation,
    dataset,
    revision,
    created,
    manifestSha256,
    signedBy,
    previousGeneration: before?.generation ?? null,
    recordCount,
    previousRecordCount: identity?.dataset === dataset ? identity.recordCount : null,
    sizeBytes,
    // If nothing has changed, no notice is needed: a server that missed an earlier switch notices it by itself.
    notice: activation.outcome === 'unchanged' ? { server: 'not_needed' } : await steps.notifyServer(generation),
    prunedGenerations: await pruneGenerations(store, options.keep),
    withdrawnIsKept: listGenerations(store).some((one) => one.generation === activation.withdrawn?.generation),
    rejects,
    rejectsFile: hasRejects ? join(generationDirectory(store, generation), REJECTS_FILE) : null,
    durationMs: Math.round(performance.now() - startedMs),
  };
}

/**
 * Builds a drop and makes it the served generation. If the process is killed at any moment, it leaves at most litter, which the next run
 * removes.
 *
 * @throws PagegateError with the reason; the generation that was served stays in use then.
 */
export async function refresh(options: RefreshOptions, steps: RefreshSteps): Promise<RefreshReport> {
  const startedMs = performance.now();
  // Check before taking the lock, which creates the store. A mistyped state directory has no license, so nothing is created there.
  const drop = admit(options, steps);
  return withStoreLock(options.store, () => refreshLocked(drop, options, steps, startedMs));
}
