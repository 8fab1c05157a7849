/** What a running server says of itself over the Unix socket and the admin listener. */
import type { MissingWorker } from './process/supervisor.ts';
import type { ReloadReport, WorkerStatus } from './process/worker-status.ts';

/** Whether every lookup can be answered, why not, and what is not as it should be all the same (an index that was refused …). */
export interface Readiness {
  /** True exactly when there are no reasons. */
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

export interface ServerStatus extends Readiness {
  /** Whether it was told to stop. */
  readonly stopping: boolean;
  readonly version: string;
  readonly pid: number;
  /** RFC 3339, UTC. */
  readonly started_at: string;
  readonly address: string;
  readonly tls: boolean;
  readonly worker_restarts: number;
  /** Those that answered. */
  readonly workers: readonly (WorkerStatus & { readonly worker: number })[];
  /** Those that did not. */
  readonly missing: readonly MissingWorker[];
}

export interface ReloadReply {
  /** Those that answered. */
  readonly workers: readonly (ReloadReport & { readonly worker: number })[];
  /** Those that did not; each is replaced, and its replacement begins with the same files. */
  readonly missing: readonly MissingWorker[];
  /** What is not as it should be afterwards, as health lists it. */
  readonly warnings: readonly string[];
}

/** The server that has taken over. */
export interface RestartReply {
  readonly version: string;
  readonly pid: number;
}
