/** What is not as it should be although lookups are answered: each warning of health is of one kind, which metrics count by. */
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

/** A commit of the ledger that takes longer is slow, in milliseconds. */
const SLOW_COMMIT_MS = 1_000;
/** A node of a fleet is heard once a second; after this it is worth a look. */
const STALE_SECONDS = 10;
/** A license that ends within this time is a warning. */
const LICENSE_DAYS = 30;
/** Free space below this is a warning, in bytes. */
const FREE_LOW_BYTES = 1024 ** 3;
/** Share of its quota from which on an account is a warning. */
const QUOTA_HIGH = 0.95;

/** What one worker tells. */
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

/** What concerns the server as a whole, as the first of its workers that answers tells it. */
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
    const what = generation === null ? 'no index is served' : 'what is served goes on, but a start would serve nothing';
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
    found.push({ kind: 'ledger', text: `the fleet's database is not heard: ${fleet.problem}` });
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
