/** What a build is told, and what it says before it begins. */
import type { VocabularyScope } from '../record/vocabulary.ts';
import type { OnProgress } from './progress.ts';

/** Behind the index's name: where rejects go by default. */
export const REJECTS_SUFFIX = '.rejects.ndjson';

export interface BuildOptions {
  /** The folder that holds manifest.json. */
  readonly drop: string;
  /** Where the index goes; an index that is there is replaced in one step, anything else is refused. */
  readonly out: string;
  /** Replaces whatever file is at `out`, but for those of the drop itself. */
  readonly force?: boolean;
  readonly generation: number;
  /** Threads, at most `LIMITS.workers` of them; 0 works in the caller's. Without it, as many as the machine has cores. */
  readonly workers?: number;
  /** For temporary files; the output's folder without it. */
  readonly tempDir?: string;
  readonly vocabulary?: VocabularyScope;
  /**
   * Gets the rejects as NDJSON, as far as they are kept; there is no such file where nothing was rejected. The report of an earlier build
   * is replaced, or removed; anything else that is there is refused.
   */
  readonly rejectsFile?: string;
  /** Told once, before the work begins. */
  readonly onStart?: (plan: BuildPlan) => void;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal | undefined;
}

/** What a build is about to do. */
export interface BuildPlan {
  /** Lines that the manifest promises. */
  readonly records: number;
  readonly parts: number;
  readonly workers: number;
  /** Where temporary files go, and what they may take at most; the index takes about the same again. */
  readonly tempDir: string;
  readonly tempBytes: number;
}
