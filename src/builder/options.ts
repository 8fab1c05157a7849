/** The options of a build, and the plan that it reports before it begins. */
import type { VocabularyScope } from '../record/vocabulary.ts';
import type { OnProgress } from './progress.ts';

/** By default, rejects go to a file with the index's name and this suffix. */
export const REJECTS_SUFFIX = '.rejects.ndjson';

export interface BuildOptions {
  /** The folder that contains manifest.json. */
  readonly drop: string;
  /** Path of the index. An existing index or an empty file is replaced atomically; anything else is refused. */
  readonly out: string;
  /** Replaces any regular file at `out`, except files of the drop itself. */
  readonly force?: boolean;
  readonly generation: number;
  /** Number of threads, at most `LIMITS.workers`; 0 works in the caller's thread. Default: the number of cores. */
  readonly workers?: number;
  /** Folder for temporary files. Default: the folder of `out`. */
  readonly tempDir?: string;
  readonly vocabulary?: VocabularyScope;
  /**
   * File for the rejects as NDJSON, up to the limits on kept rejects. If nothing was rejected, no file is written. The report of an earlier
   * build or an empty file is replaced or removed; anything else is refused.
   */
  readonly rejectsFile?: string;
  /** Called once, before the work begins. */
  readonly onStart?: (plan: BuildPlan) => void;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal | undefined;
}

/** What a build is about to do, as `onStart` gets it. */
export interface BuildPlan {
  /** Number of lines according to the manifest. */
  readonly records: number;
  readonly parts: number;
  readonly workers: number;
  /** Folder of the temporary files, and an upper estimate of their size. The index needs about the same space again. */
  readonly tempDir: string;
  readonly tempBytes: number;
}
