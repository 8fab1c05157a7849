/** The program of a job's process: it runs one job and ends. If the console ends first, the job is aborted. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { examine } from '../../doctor/examine.ts';
import { messageOf } from '../../errors.ts';
import { compareIndexes } from '../../index/compare.ts';
import { openScan } from '../../index/read-all.ts';
import type { ProgressView } from '../../progress.ts';
import { rollback } from '../../refresh/rollback.ts';
import { findGeneration } from '../../refresh/store.ts';
import { noteInAudit } from '../../refresh-steps/audit-note.ts';
import { describeRefresh, refreshFrom, refreshWarnings } from '../../refresh-steps/run.ts';
import { createRefreshSteps, describeNotice } from '../../refresh-steps/steps.ts';
import type { Difference, FromJob, JobKind, JobRequest, Jobs, ToJob } from './messages.ts';

const tell = (message: FromJob): void => void process.send?.(message);
const view: ProgressView = { update: (progress) => tell({ type: 'progress', progress }) };
const abort = new AbortController();

const WORK: { readonly [K in JobKind]: (config: Config, input: Jobs[K]['input']) => Promise<Jobs[K]['output']> } = {
  doctor: (config) => examine(config),
  verify: async (config, { generation }) => {
    const { indexFile } = findGeneration(statePaths(config).indexDir, generation);
    const steps = await createRefreshSteps(config, view);
    const { recordCount } = await steps.verify(indexFile, abort.signal);
    return { records: recordCount };
  },
  rollback: async (config, { generation, actor }) => {
    const steps = await createRefreshSteps(config, view);
    const report = await rollback({ store: statePaths(config).indexDir, to: generation, signal: abort.signal }, steps);
    const problem = await noteInAudit(config, actor, 'generation.rollback', report);
    const served = `Now serving generation ${report.generation}, revision ${report.revision}.`;
    return { text: sentences(served, describeNotice(report.notice), problem) };
  },
  refresh: async (config, input) => {
    const { report, problem } = await refreshFrom(config, { ...input, signal: abort.signal }, view);
    const warnings = refreshWarnings(report).map((warning) => `Warning: ${warning}.`);
    return { text: sentences(...describeRefresh(report), describeNotice(report.notice), ...warnings, problem) };
  },
  compare: (config, { before, after }) => compare(config, before, after),
};

const sentences = (...texts: readonly (string | undefined)[]): string =>
  texts.filter((text) => text !== undefined && text !== '').join(' ');

async function compare(config: Config, before: number, after: number): Promise<Difference> {
  const store = statePaths(config).indexDir;
  const older = openScan(findGeneration(store, before).indexFile);
  const newer = openScan(findGeneration(store, after).indexFile);
  const counts = { added: 0, removed: 0, changed: 0 };
  const records = Math.max(1, older.info.recordCount, newer.info.recordCount);
  let steps = 0;
  for (const change of compareIndexes(older, newer)) {
    if (change !== undefined) {
      counts[change.kind] += 1;
      continue;
    }
    abort.signal.throwIfAborted();
    // `compareIndexes` yields undefined once every 4,096 records.
    if (steps % 64 === 0) view.update({ what: 'comparing', share: Math.min(0.99, (steps * 4_096) / records) });
    steps += 1;
    await nextTurn();
  }
  older.close();
  newer.close();
  return counts;
}

async function work<K extends JobKind>(config: Config, { kind, input }: JobRequest<K>): Promise<void> {
  try {
    tell({ type: 'done', output: await WORK[kind](config, input) });
  } catch (error) {
    tell({ type: 'failed', message: messageOf(error) });
  } finally {
    process.disconnect?.();
  }
}

process.on('disconnect', () => {
  abort.abort(new Error('The console has ended.'));
});
process.on('message', (message: ToJob) => {
  if (message.type === 'start') void work(message.config, message.request);
  else abort.abort(new Error(message.reason));
});
