/** Jobs, which take longer than a page may take, and the messages of their processes. */
import type { Config } from '../../config/config.ts';
import type { CheckResult } from '../../doctor/check.ts';
import type { Progress } from '../../progress.ts';

/** What changed between two generations. */
export interface Difference {
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
}

/** The input and output of each kind of job. */
export interface Jobs {
  readonly doctor: { readonly input: Record<string, never>; readonly output: readonly CheckResult[] };
  readonly verify: { readonly input: { readonly generation: number }; readonly output: { readonly records: number } };
  readonly rollback: {
    readonly input: { readonly generation: number; readonly actor: string };
    readonly output: { readonly text: string };
  };
  readonly refresh: {
    readonly input: { readonly drop: string; readonly manifestSha256: string; readonly actor: string };
    readonly output: { readonly text: string };
  };
  readonly compare: {
    readonly input: { readonly before: number; readonly after: number };
    readonly output: Difference;
  };
}

export type JobKind = keyof Jobs;

export interface JobRequest<K extends JobKind = JobKind> {
  readonly kind: K;
  readonly input: Jobs[K]['input'];
}

export type ToJob =
  | { readonly type: 'start'; readonly config: Config; readonly request: JobRequest }
  | { readonly type: 'stop'; readonly reason: string };

export type FromJob =
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'done'; readonly output: unknown }
  | { readonly type: 'failed'; readonly message: string };
