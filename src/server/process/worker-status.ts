/** The status of a worker, for the primary and monitoring. */
import type { MeterHealth } from '../../ledger/meter.ts';

/** The parts that can be reloaded while the server runs. */
export type DataPart = 'policy' | 'index' | 'certificate';

/** The result of a reload for each part: taken into use, unchanged, or refused with the reason. */
export type ReloadReport = Readonly<Record<DataPart, string>>;

export interface LicenseStatus {
  /** The last day whose data it covers, as YYYY-MM-DD; null if it names drops instead of a day. */
  readonly until: string | null;
  /** Why it cannot be used or does not cover the index in use; null if there is no problem. */
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
  /** Why lines are being dropped; null if they are not. */
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
  /** The newest drop that was rolled back; null if newer data is served since. */
  readonly withdrawn: WithdrawnStatus | null;
  /** Null if the decision log is off. */
  readonly decision_log: DecisionLogStatus | null;
  /** Why lookups fail or no index is served: it is damaged, or its file was written to or truncated. Null if neither is known. */
  readonly index_failure: string | null;
  /** Why the files of a part were refused. Parts without a problem have no entry. */
  readonly problems: Readonly<Partial<Record<DataPart, string>>>;
}
