/** Activates a kept generation: the one before the served one, or any by its number. */
import { PagegateError } from '../errors.ts';
import { isAbsent } from '../platform/folders.ts';
import { withStoreLock } from './lock.ts';
import type { RefreshSteps, ServerNotice } from './refresh.ts';
import { findGeneration, type Generation, listGenerations, removeLitter, switchCurrent } from './store.ts';
import { readWithdrawn, reinstate, withdrawForOlder } from './withdrawn-drops.ts';

export interface RollbackOptions {
  readonly store: string;
  /** The generation to activate; by default the newest one before the served one whose drop was not rolled back earlier. */
  readonly to?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RollbackReport {
  readonly outcome: 'activated' | 'unchanged';
  readonly generation: number;
  readonly revision: number;
  readonly previousGeneration: number | null;
  readonly notice: ServerNotice;
}

type RollbackSteps = Pick<RefreshSteps, 'verify' | 'assertEntitled' | 'notifyServer' | 'onStep'>;

function choose(store: string, to: number | undefined, served: Generation | undefined): Generation {
  if (to !== undefined) return findGeneration(store, to);
  const withdrawn = new Set(readWithdrawn(store).map((one) => one.manifestSha256));
  const chosen = listGenerations(store).findLast(
    ({ generation, report }) =>
      served !== undefined &&
      generation < served.generation &&
      report !== undefined &&
      !withdrawn.has(report.manifestSha256),
  );
  if (chosen === undefined) throw new PagegateError('nothing_to_roll_back');
  return chosen;
}

async function rollbackLocked(options: RollbackOptions, steps: RollbackSteps): Promise<RollbackReport> {
  const { store } = options;
  await removeLitter(store);
  const served = listGenerations(store).find((one) => one.current);
  const chosen = choose(store, options.to, served);
  const { generation, report } = chosen;
  if (report === undefined) throw new PagegateError('generation_damaged', `Generation ${generation} has no report.`);
  const { dataset, manifestSha256, created, revision } = report;
  steps.assertEntitled({ dataset, manifestSha256, created });
  steps.onStep?.('verify');
  const index = await steps.verify(chosen.indexFile, options.signal);
  if (index.manifestSha256 !== manifestSha256) {
    throw new PagegateError('generation_damaged', `The index of generation ${generation} is of another drop.`);
  }
  if (served?.generation !== generation) {
    if (served?.report !== undefined)
      withdrawForOlder(store, { ...served.report, generation: served.generation }, { ...report, generation });
    steps.onStep?.('switch');
    await switchCurrent(store, generation);
  }
  reinstate(store, manifestSha256);
  return {
    outcome: served?.generation === generation ? 'unchanged' : 'activated',
    generation,
    revision,
    previousGeneration: served?.generation ?? null,
    notice: await steps.notifyServer(generation),
  };
}

/**
 * Verifies a kept generation, checks that the license covers it, and activates it.
 *
 * @throws PagegateError if it must not be activated
 */
export async function rollback(options: RollbackOptions, steps: RollbackSteps): Promise<RollbackReport> {
  // If there is no store, fail now: taking the lock would create one.
  if (isAbsent(options.store)) choose(options.store, options.to, undefined);
  return withStoreLock(options.store, () => rollbackLocked(options, steps));
}
