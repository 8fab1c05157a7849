/** What a worker says about itself, as the primary and monitoring read it. */
import type { MeterHealth } from '../../ledger/meter.ts';

/** What can be loaded anew while serving. */
export type Part = 'policy' | 'index' | 'certificate';

/** How a part fared: taken into use, found to be the same, or refused for a reason. */
export type ReloadReport = Readonly<Record<Part, string>>;

export interface WorkerStatus {
  readonly pid: number;
  readonly ready: boolean;
  readonly draining: boolean;
  readonly data: string | null;
  readonly generation: number | null;
  readonly index_created: string | null;
  readonly dataset: string | null;
  readonly revision: number | null;
  readonly records: number | null;
  readonly page_types_complete: boolean | null;
  readonly unicode_agrees: boolean | null;
  readonly policy: string | null;
  readonly connections: number;
  readonly in_flight: number;
  readonly ledger: MeterHealth;
  /** Why lookups fail, or why no index is served: it is damaged, or its file was written to or cut. Null where neither is known. */
  readonly index_failure: string | null;
  /** Why a part is not what the files say; absent parts are fine. */
  readonly problems: Readonly<Partial<Record<Part, string>>>;
}
