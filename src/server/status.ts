/** The state of a running server, as the control socket and the admin listener report it. */
import type { MissingWorker } from './process/supervisor.ts';
import type { ReloadReport, WorkerStatus } from './process/worker-status.ts';

/** Whether every lookup can be answered, the reasons why not, and warnings that do not stop lookups (an index that was refused …). */
export interface Readiness {
  /** True exactly when there are no reasons. */
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

export interface ServerStatus extends Readiness {
  /** Whether the server is stopping. */
  readonly stopping: boolean;
  readonly version: string;
  readonly pid: number;
  /** RFC 3339, UTC. */
  readonly started_at: string;
  readonly address: string;
  readonly tls: boolean;
  readonly worker_restarts: number;
  /** Workers that answered. */
  readonly workers: readonly (WorkerStatus & { readonly worker: number })[];
  /** Workers that did not answer. */
  readonly missing: readonly MissingWorker[];
}

export interface ReloadReply {
  /** Workers that answered. */
  readonly workers: readonly (ReloadReport & { readonly worker: number })[];
  /** Workers that did not answer. Each is replaced, and its replacement loads the same files. */
  readonly missing: readonly MissingWorker[];
  /** Warnings of the server after the reload. */
  readonly warnings: readonly string[];
}

/** The server that has taken over. */
export interface RestartReply {
  readonly version: string;
  readonly pid: number;
}
