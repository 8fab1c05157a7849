/** Runs a refresh for a command or for the console: with the same steps, progress that both can show, and a line in the audit table. */
import { buildIndex } from '../builder/build.ts';
import { describeProgress } from '../builder/progress.ts';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { counted, withCommas } from '../counted.ts';
import { type CheckedDrop, checkDrop } from '../drop/check-drop.ts';
import type { Progress, ProgressView } from '../progress.ts';
import { ProgressFile } from '../refresh/progress.ts';
import { type BuildRequest, type RefreshOptions, type RefreshReport, refresh } from '../refresh/refresh.ts';
import { REJECTS_FILE } from '../refresh/store.ts';
import { noteInAudit } from './audit-note.ts';
import { readDropKeys } from './drop-keys.ts';
import { createRefreshSteps } from './steps.ts';

/** The options of a refresh. */
export interface RefreshRequest
  extends Pick<
    RefreshOptions,
    'drop' | 'manifestSha256' | 'unsigned' | 'rollback' | 'otherDataset' | 'rebuild' | 'signal'
  > {
  /** The name for the audit table. */
  readonly actor: string;
  /** Number of generations to keep; by default the configured number. */
  readonly keep?: number | undefined;
  /** Number of threads that build and verify; by default one per core. */
  readonly workers?: number | undefined;
}

export interface RefreshResult {
  readonly report: RefreshReport;
  /** Why the line in the audit table is missing; undefined if it is not. */
  readonly problem: string | undefined;
}

/** Creates the step that builds the index. Its result is stored in the generation's report. */
function createBuildStep(progress: ProgressView, workers: number | undefined) {
  return async (request: BuildRequest): Promise<unknown> => {
    const { out, rejectsFile, ...kept } = await buildIndex({
      ...request,
      ...(workers === undefined ? {} : { workers }),
      onProgress: (state) => progress.update(describeProgress(state)),
    });
    return { ...kept, rejectsFile: rejectsFile === null ? null : REJECTS_FILE };
  };
}

/**
 * Builds a drop, makes it the served generation, and records the change in the audit table.
 *
 * @param progress receives the progress, which is also written to the index store for other processes.
 * @throws PagegateError with the reason; the generation that was served stays in use then.
 */
export async function refreshFrom(
  config: Config,
  request: RefreshRequest,
  progress: ProgressView,
): Promise<RefreshResult> {
  const { actor, workers, keep = config.refresh.keep_generations, ...options } = request;
  const store = statePaths(config).indexDir;
  const shared = new ProgressFile(store);
  const both = {
    update: (state: Progress): void => {
      progress.update(state);
      shared.update(state);
    },
  };
  try {
    const steps = {
      ...(await createRefreshSteps(config, both, workers)),
      build: createBuildStep(both, workers),
    };
    const report = await refresh({ ...options, store, keep, trustedKeys: readDropKeys(config) }, steps);
    const isChanged = report.outcome !== 'unchanged';
    const problem = isChanged ? await noteInAudit(config, actor, 'generation.refresh', report) : undefined;
    return { report, problem };
  } finally {
    shared.done();
  }
}

/** Checks a drop as a refresh would, without building it. @throws PagegateError what `checkDrop` and reading the trusted keys throw */
export const inspectDrop = (config: Config, drop: string): CheckedDrop =>
  checkDrop({ drop, trustedKeys: readDropKeys(config) });

/** Describes what a refresh has done, in sentences. */
export function describeRefresh(report: RefreshReport): string[] {
  const { dataset, revision, generation, recordCount, sizeBytes, signedBy, prunedGenerations } = report;
  const what = `${dataset} revision ${revision} (${signedBy === null ? 'unsigned' : `signed by ${signedBy}`})`;
  if (report.withdrawn !== null) {
    const { withdrawn } = report;
    return [
      `unchanged (withdrawn): revision ${withdrawn.revision} was rolled back here at ${withdrawn.withdrawnAt}, as generation ${withdrawn.generation}.`,
      `${what} is served as generation ${generation}. To serve the other one on purpose: ${
        report.withdrawnIsKept ? `pagegate rollback --to ${withdrawn.generation}, or ` : ''
      }pagegate refresh DROP --rollback.`,
    ];
  }
  if (report.outcome === 'unchanged') return [`${what} is already served as generation ${generation}; nothing to do.`];
  const how = report.reused ? 'was already built and is now served' : 'is built, verified and served';
  const size = `${counted(recordCount, 'record')}, ${counted(sizeBytes, 'byte')}`;
  const lines = [`${what} ${how} as generation ${generation}: ${size}, ${(report.durationMs / 1000).toFixed(1)} s.`];
  const rejected = describeRejects(report);
  if (rejected !== undefined) lines.push(rejected);
  if (prunedGenerations.length > 0) lines.push(`Generations removed: ${prunedGenerations.join(', ')}.`);
  return lines;
}

/** A new index with less than this share of the previous number of records is probably incomplete by mistake of the vendor. */
const SHRUNK_BELOW = 0.5;

/** Warnings for the operator about a refresh that has succeeded. */
export function refreshWarnings(report: RefreshReport): string[] {
  const { recordCount, previousRecordCount: before, previousGeneration, prunedGenerations } = report;
  if (before === null || recordCount >= before * SHRUNK_BELOW) return [];
  const isKept = previousGeneration !== null && !prunedGenerations.includes(previousGeneration);
  const remedy = isKept ? `pagegate rollback --to ${previousGeneration}` : 'pagegate refresh OLDER-DROP --rollback';
  const what = `the index has ${counted(recordCount, 'record')}, the one before had ${withCommas(before)}`;
  return [`${what}. If the vendor did not mean that: ${remedy}`];
}

/** The most reasons that a sentence names. */
const REASONS_MAX = 4;

/** Describes what was left out of the build, the most frequent reasons first; undefined if nothing was. */
function describeRejects({ rejects, rejectsFile }: RefreshReport): string | undefined {
  const reasons = Object.entries(rejects).sort(([, a], [, b]) => b - a);
  if (reasons.length === 0) return undefined;
  const total = reasons.reduce((sum, [, count]) => sum + count, 0);
  const named = reasons.slice(0, REASONS_MAX).map(([reason, count]) => `${reason} ${withCommas(count)}`);
  const more = reasons.length > REASONS_MAX ? ', …' : '';
  return `Left out of it: ${counted(total, 'reject')} (${named.join(', ')}${more}); see ${rejectsFile}.`;
}
