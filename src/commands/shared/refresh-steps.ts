/** The step of a refresh that builds. */
import type { BuildRequest } from '../../refresh/refresh.ts';
import { REJECTS_FILE } from '../../refresh/store.ts';
import { describeProgress } from '../build.ts';
import type { Progress } from './output.ts';

/** Builds with the given number of threads. Its result is what the generation's report keeps. */
export function createBuildStep(progress: Progress, workers: number | undefined) {
  return async (request: BuildRequest): Promise<unknown> => {
    const { buildIndex } = await import('../../builder/build.ts');
    const { out, rejectsFile, ...kept } = await buildIndex({
      ...request,
      ...(workers === undefined ? {} : { workers }),
      onProgress: (state) => progress.update(describeProgress(state)),
    });
    return { ...kept, rejectsFile: rejectsFile === null ? null : REJECTS_FILE };
  };
}
