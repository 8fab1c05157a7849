/** What a worker says about itself, as the primary and monitoring read it. */
import type { MeterHealth } from '../../ledger/meter.ts';

/** What can be reloaded while serving. */
export type DataPart = 'policy' | 'index' | 'certificate';

/** How a part fared: taken into use, found to be the same, or refused for a reason. */
export type ReloadReport = Readonly<Record<DataPart, string>>;

export interface LicenseStatus {
  /** The last day whose data it covers, as YYYY-MM-DD; null where it names drops instead of a day. */
  readonly until: string | null;
  /** Why it cannot be used, or does not cover what is served; null where it can and does. */
  readonly problem: string | null;
}

export interface WithdrawnStatus {
  readonly generation: number;
  readonly revision: number;
  /** RFC 3339. */
  readonly withdrawn_at: string;
}

export interface DecisionLogStatus {
  readonly lines: number;
  readonly dropped: number;
  /** Why lines are dropped now; null where none are. */
  readonly problem: string | null;
}

export interface WorkerStatus {
  readonly pid: number;
  readonly ready: boolean;
  readonly draining: boolean;
  readonly data: string | null;
  readonly generation: number | null;
  readonly index_created_at: string | null;
  readonly dataset: string | null;
  readonly revision: number | null;
  readonly records: number | null;
  readonly page_types_complete: boolean | null;
  readonly unicode_agrees: boolean | null;
  readonly policy: string | null;
  readonly connections: number;
  readonly in_flight: number;
  readonly ledger: MeterHealth;
  /** The installed license. */
  readonly license: LicenseStatus;
  /** The newest drop, where it was rolled back and nothing newer is served since. */
  readonly withdrawn: WithdrawnStatus | null;
  /** Null where it is off. */
  readonly decision_log: DecisionLogStatus | null;
  /** Why lookups fail, or why no index is served: it is damaged, or its file was written to or cut. Null where neither is known. */
  readonly index_failure: string | null;
  /** Why a part is not what the files say; absent parts are fine. */
  readonly problems: Readonly<Partial<Record<DataPart, string>>>;
}
