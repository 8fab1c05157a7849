/** Warnings of health: problems that need attention although lookups are answered. Metrics count them by kind. */
import { counted } from '../../counted.ts';
import type { NearLimit } from '../../ledger/writer.ts';
import { endOfDayMs } from '../../license/license.ts';
import { DAY_MS } from '../../times.ts';
import { certificateWarnings } from '../certificate-warnings.ts';
import type { WorkerStatus } from '../process/worker-status.ts';
import type { Certificate } from '../read-certificate.ts';
import type { FreeBytes } from './disk-space.ts';

export const WARNING_KINDS = [
  'worker',
  'index',
  'policy',
  'certificate',
  'withdrawn',
  'license',
  'ledger',
  'quota',
  'decision_log',
  'disk',
] as const;
export type WarningKind = (typeof WARNING_KINDS)[number];

export interface Warning {
  readonly kind: WarningKind;
  /** A sentence without its full stop. */
  readonly text: string;
}

/** Warn if a commit of the ledger takes longer than this, in milliseconds. */
const SLOW_COMMIT_MS = 1_000;
/** Warn if a fleet's node has not reached the database for this long. It contacts it every second. */
const STALE_SECONDS = 10;
/** Warn if the license ends within this time. */
const LICENSE_DAYS = 30;
/** Warn if free space is below this, in bytes. */
const FREE_LOW_BYTES = 1024 ** 3;
/** Warn if an account has used this share of its quota. */
const QUOTA_HIGH = 0.95;

/** Returns the warnings of one worker. */
export function workerWarnings({
  worker,
  problems,
  unicode_agrees,
  decision_log,
}: WorkerStatus & { readonly worker: number }): Warning[] {
  const found: Warning[] = Object.entries(problems).map(([part, problem]) => ({
    kind: part as keyof typeof problems,
    text: `worker ${worker}, ${part}: ${problem}`,
  }));
  if (unicode_agrees === false)
    found.push({ kind: 'index', text: `worker ${worker}: the index was built with another Unicode version` });
  if (decision_log?.problem != null)
    found.push({ kind: 'decision_log', text: `worker ${worker}, decision log: ${decision_log.problem}` });
  return found;
}

/** Returns the warnings about the server as a whole, from the status of the first worker that answers. */
export function dataWarnings({ license, withdrawn, ledger, generation }: WorkerStatus, nowMs: number): Warning[] {
  const found: Warning[] = [];
  if (license.until !== null) {
    const days = Math.floor((endOfDayMs(license.until) - nowMs) / DAY_MS);
    if (days < 0)
      found.push({ kind: 'license', text: `the license ended with ${license.until}: no newer data is activated` });
    else if (days < LICENSE_DAYS)
      found.push({ kind: 'license', text: `the license ends with ${license.until}, in ${counted(days, 'day')}` });
  }
  if (license.problem !== null) {
    const why = license.problem.replace(/\.$/, '');
    const what =
      generation === null
        ? 'no index is served'
        : 'the server continues with its index, but after a start it would serve nothing';
    found.push({ kind: 'license', text: `${what}: ${why}` });
  }
  if (withdrawn !== null) {
    const { generation, revision, withdrawn_at } = withdrawn;
    const text = `generation ${generation} (revision ${revision}) was rolled back at ${withdrawn_at}; an older one is served until a newer drop comes`;
    found.push({ kind: 'withdrawn', text });
  }
  if (ledger.commit_ms > SLOW_COMMIT_MS)
    found.push({
      kind: 'ledger',
      text: `the latest commit of the ledger took ${(ledger.commit_ms / 1_000).toFixed(1)} s`,
    });
  const { fleet } = ledger;
  if (fleet !== undefined && fleet.stale_seconds > STALE_SECONDS)
    found.push({ kind: 'ledger', text: `the fleet's database does not answer: ${fleet.problem}` });
  if (fleet?.learning === true)
    found.push({
      kind: 'ledger',
      text: "the fleet's database has lost commits; nothing is granted until all nodes were heard",
    });
  return found;
}

export function certificateProblems(
  certificate: Certificate | undefined,
  names: readonly string[],
  nowMs: number,
): Warning[] {
  if (certificate === undefined) return [];
  return certificateWarnings(certificate, names, nowMs).map((text) => ({ kind: 'certificate', text }));
}

export function hostWarnings(freeBytes: FreeBytes): Warning[] {
  return Object.entries(freeBytes)
    .filter(([, bytes]) => bytes < FREE_LOW_BYTES)
    .map(([place, bytes]) => ({
      kind: 'disk',
      text: `the disk of ${place} has ${Math.floor(bytes / 1024 ** 2)} MiB free`,
    }));
}

export function quotaWarnings(accounts: readonly NearLimit[]): Warning[] {
  return accounts
    .filter(({ used, limit }) => used >= QUOTA_HIGH * limit)
    .map(({ account, used, limit }) => ({
      kind: 'quota',
      text: `account ${account} has used ${Math.floor((100 * used) / limit)} % of its quota`,
    }));
}
