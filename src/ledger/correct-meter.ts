/** Applies an operator's correction of a meter. */
import { PagegateError } from '../errors.ts';
import type { Correction, Ledger } from './ledger.ts';
import { tryWriterLock } from './store/identity.ts';
import { METER_CORRECTED } from './store/meters.ts';
import { Reserver } from './writer/reserver.ts';

const TIMEOUT_MS = 5_000;
const STEP_MS = 20;

/**
 * Requests a correction and waits until the ledger writer has applied it. If none runs, this process applies it.
 *
 * @param note the reason, for the audit table.
 * @returns how many lookups `credit` gave back: at most those that were used.
 * @throws PagegateError what {@link Ledger.correct} throws; also ledger_unavailable if the ledger writer could not apply it yet. It keeps trying.
 */
export async function correctMeter(
  ledger: Ledger,
  file: string,
  { name, wanted, note }: { readonly name: string; readonly wanted: Correction; readonly note: string },
): Promise<number> {
  const usedBefore = (await ledger.view(name)).quota.quota_used;
  const { id } = await ledger.correct(name, wanted, note);
  if (!(await areApplied(ledger, file)))
    throw new PagegateError('ledger_unavailable', 'The correction is noted; the server applies it once it can write.');
  const line = await ledger.store.row<{ before: string }>(
    'SELECT before FROM audit WHERE account_id = ? AND action = ? ORDER BY id DESC LIMIT 1',
    id,
    METER_CORRECTED,
  );
  // A fleet has no such line: its database applies the correction.
  const used = line === undefined ? usedBefore : (JSON.parse(line.before) as { used: number }).used;
  return Math.min(wanted.credit ?? 0, wanted.used ?? (wanted.cycle === undefined ? used : 0));
}

/** Waits until no requested correction is left; returns false on a timeout. */
async function areApplied(ledger: Ledger, file: string): Promise<boolean> {
  // In a fleet a correction takes effect with its transaction.
  if (ledger.store.isFleet) return true;
  const release = tryWriterLock(file);
  if (release !== undefined) {
    try {
      const reserver = new Reserver({ file });
      if (reserver.open()) reserver.tick();
      reserver.close();
    } finally {
      release();
    }
  }
  for (
    let waitedMs = 0;
    (await ledger.store.row('SELECT 1 AS one FROM corrections')) !== undefined;
    waitedMs += STEP_MS
  ) {
    if (waitedMs >= TIMEOUT_MS) return false;
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
  return true;
}
