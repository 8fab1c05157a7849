/**
 * A refresh, a straight line: signature → drop checked → entitlement → lock → revision → build beside → verify → number → switch →
 * tell the server → prune → report. Everything before the switch leaves what is served untouched; the switch is one rename.
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

/** What lies in a generation never changes. */
const KEPT_MODE = 0o444;

/** What an index says about itself. */
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
  /** Gets the rejected lines; kept beside the index. */
  readonly rejectsFile: string;
  readonly signal: AbortSignal | undefined;
}

/** What a refresh calls in other modules; `refresh-steps` has the real ones, tests their own. */
export interface RefreshSteps {
  /**
   * Builds the index file and verifies it. Returns what the generation's report keeps of it.
   *
   * @throws PagegateError where the drop is not what its manifest says
   */
  build(request: BuildRequest): Promise<unknown>;
  /** Opens an index that was just verified and says what it is. */
  identify(indexFile: string): IndexIdentity;
  /** Reads the whole index and throws where it is damaged. */
  verify(indexFile: string, signal: AbortSignal | undefined): Promise<IndexIdentity>;
  /** @throws PagegateError where the license does not cover the drop */
  assertEntitled(drop: { dataset: string; manifestSha256: string; created: string }): void;
  /** Tells a running server; says what came of it. */
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
  /** Generations to keep, the served one included; at least 1. */
  readonly keep: number;
  readonly trustedKeys: readonly TrustedKey[];
  /** The drop that is meant, by its manifest; another one that has taken its place is refused. */
  readonly manifestSha256?: string;
  readonly unsigned?: boolean;
  readonly rollback?: boolean;
  readonly otherDataset?: boolean;
  /** Builds the drop even if it is served or was built before: another version of the program makes another index. */
  readonly rebuild?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What a refresh did; generation, drop and size are those of what is served now. */
export interface RefreshReport
  extends Pick<
    GenerationReport,
    'generation' | 'dataset' | 'revision' | 'created' | 'manifestSha256' | 'signedBy' | 'recordCount' | 'sizeBytes'
  > {
  /** `unchanged` where the drop is what is already served, or was rolled back here. */
  readonly outcome: 'activated' | 'unchanged';
  /** True where an earlier, interrupted refresh had already built this generation. */
  readonly reused: boolean;
  readonly previousGeneration: number | null;
  /** Records of what was served before; null if that is nothing, of another dataset, or cannot be read. */
  readonly previousRecordCount: number | null;
  readonly notice: ServerNotice;
  readonly prunedGenerations: readonly number[];
  /** Set if the drop was rolled back here, so that it is not served; the report is then about what is served instead. */
  readonly withdrawn: WithdrawnManifest | null;
  /** Whether the generation that was rolled back is still kept. */
  readonly withdrawnIsKept: boolean;
  /** What was left out of this build, by reason; each of them is in `rejectsFile`, up to its limit. */
  readonly rejects: Readonly<Record<string, number>>;
  /** Null where nothing was left out: there is no such file then. */
  readonly rejectsFile: string | null;
  readonly durationMs: number;
}

/** What is served, even if the index was put there by hand and has no report; undefined if it cannot be read. */
function identifyServed(served: Generation | undefined, steps: RefreshSteps): IndexIdentity | undefined {
  if (served === undefined) return undefined;
  try {
    return steps.identify(served.indexFile);
  } catch {
    return undefined;
  }
}

/** Refuses what must not follow the generation that is served. */
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

/** A generation that an interrupted refresh finished but did not activate, if it is still intact. */
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

/** The drop that is to be built, where manifest, signature and license allow it. Nothing is made for one that they do not. */
function admit(options: RefreshOptions, steps: RefreshSteps): CheckedDrop {
  const drop = checkDrop(options);
  const { manifest, manifestSha256 } = drop;
  if (options.manifestSha256 !== undefined && options.manifestSha256 !== manifestSha256)
    throw new PagegateError('drop_changed', 'Another drop was delivered since this one was looked at.');
  assertFullDrop(manifest);
  steps.assertEntitled({ dataset: manifest.dataset, manifestSha256, created: manifest.created });
  return drop;
}

/** What the store holds when a refresh begins. */
interface StoreBefore {
  readonly generations: readonly Generation[];
  readonly served: Generation | undefined;
  /** What is served: what the index says, and the report where the index cannot be read; undefined where neither tells. */
  readonly identity: Pick<IndexIdentity, 'dataset' | 'revision' | 'manifestSha256' | 'recordCount'> | undefined;
  /** Whether the index can be read and is the one of its report. */
  readonly isWhole: boolean;
}

/** The generation that is served when a refresh is done, and how that came about. */
interface Activation extends Pick<RefreshReport, 'outcome' | 'reused' | 'withdrawn'> {
  readonly served: GenerationReport;
}

const unchanged = (served: GenerationReport, withdrawn: WithdrawnManifest | null = null): Activation => ({
  served,
  outcome: 'unchanged',
  reused: true,
  withdrawn,
});

/** Builds the drop, or takes what an interrupted refresh finished, and switches to it, unless the drop is served or was rolled back. */
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
  // After an upgrade the program may be unable to read the served index, and a report can be lost. The same drop, brought again by the
  // timer, is then built again.
  const mustBuild = isServed && (options.rebuild === true || !isWhole);
  if (isServed && !mustBuild && served?.report !== undefined) return unchanged(served.report);
  if (!isServed) {
    // A timer brings it again each day: that is no failure.
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
    // A server that missed an earlier switch finds it by itself, so it need not load again what it has.
    notice: activation.outcome === 'unchanged' ? { server: 'not_needed' } : await steps.notifyServer(generation),
    prunedGenerations: await pruneGenerations(store, options.keep),
    withdrawnIsKept: listGenerations(store).some((one) => one.generation === activation.withdrawn?.generation),
    rejects,
    rejectsFile: hasRejects ? join(generationDirectory(store, generation), REJECTS_FILE) : null,
    durationMs: Math.round(performance.now() - startedMs),
  };
}

/**
 * Makes a drop the served generation. Killed at any moment it leaves at most litter, which the next run removes.
 *
 * @throws PagegateError that says why not; then what was served goes on being served
 */
export async function refresh(options: RefreshOptions, steps: RefreshSteps): Promise<RefreshReport> {
  const startedMs = performance.now();
  // Before the lock, which makes the store: a state directory that nobody uses, often a mistyped one, has no license.
  const drop = admit(options, steps);
  return withStoreLock(options.store, () => refreshLocked(drop, options, steps, startedMs));
}
