/** The steps that a refresh and a rollback call in other modules: verifier, license, notice to the running server. */
import type { Config } from '../config/config.ts';
import { messageOf, PagegateError } from '../errors.ts';
import { type ProgressView, shareOf } from '../progress.ts';
import type { IndexIdentity, RefreshSteps, ServerNotice } from '../refresh/refresh.ts';
import type { ReloadReply } from '../server/status.ts';

type SharedSteps = Pick<RefreshSteps, 'verify' | 'identify' | 'assertEntitled' | 'notifyServer' | 'onStep'>;

const STEP_TEXTS: Readonly<Record<string, string>> = {
  build: 'building the next generation',
  verify: 'verifying the index',
  switch: 'switching',
};

/** Creates the steps for a configuration. They report to `progress` and verify with `workers` threads, by default one per core. */
export async function createRefreshSteps(
  config: Config,
  progress: ProgressView,
  workers?: number,
): Promise<SharedSteps> {
  const { statePaths } = await import('../config/paths.ts');
  const { readTrustedKeys } = await import('../config/trusted-keys.ts');
  const { openIndex } = await import('../index/read.ts');
  const { verifyIndex } = await import('../index/verify.ts');
  const { loadLicense } = await import('../license/installed.ts');
  const { assertEntitled } = await import('../license/license.ts');
  const paths = statePaths(config);
  const identify = (indexFile: string): IndexIdentity => {
    const index = openIndex(indexFile);
    try {
      const { dataset, revision, manifestSha256, recordCount, sizeBytes } = index.info;
      return { dataset, revision, manifestSha256, recordCount, sizeBytes };
    } finally {
      index.close();
    }
  };
  return {
    verify: async (indexFile, signal) => {
      const report = await verifyIndex(indexFile, {
        ...(signal === undefined ? {} : { signal }),
        ...(workers === undefined ? {} : { workers }),
        onProgress: (done, total) => progress.update({ what: 'verifying the index', share: shareOf(done, total) }),
      });
      if (!report.ok) {
        const first = report.damages[0];
        const what = `${indexFile}: ${first?.where} at offset ${first?.offset}: ${first?.what}.`;
        throw new PagegateError('generation_damaged', what, { file: indexFile });
      }
      return identify(indexFile);
    },
    identify,
    assertEntitled: (drop) =>
      assertEntitled(loadLicense(paths.licenseFile, readTrustedKeys(config.license.trusted_keys)), drop),
    notifyServer: () => notifyServer(paths.socket),
    onStep: (step) => progress.update({ what: STEP_TEXTS[step] ?? step }),
  };
}

/** Makes a running server load the current generation at once. Without this it would notice by itself, a little later. */
async function notifyServer(socket: string): Promise<ServerNotice> {
  const { askServer } = await import('../server/control-socket.ts');
  try {
    const { workers, missing } = (await askServer(socket, 'reload')) as ReloadReply;
    const refused = workers.map(({ index }) => index).find((text) => text.startsWith('refused'));
    if (refused !== undefined) return { server: 'failed', reason: refused };
    const silent = missing.map(({ worker, reason }) => `worker ${worker} ${reason}; its replacement will`);
    return silent.length === 0 ? { server: 'told' } : { server: 'failed', reason: silent.join(', ') };
  } catch (error) {
    if (error instanceof PagegateError && error.code === 'server_not_running') return { server: 'not_running' };
    return { server: 'failed', reason: messageOf(error) };
  }
}

/** Describes the result of a notice in a sentence; empty if there is nothing to say. */
export function describeNotice(notice: ServerNotice): string {
  if (notice.server === 'not_needed') return '';
  if (notice.server === 'told') return 'The running server has taken it into use.';
  if (notice.server === 'not_running') return 'No server is running; the next one starts with it.';
  return `The running server did not take it into use: ${notice.reason}`;
}
