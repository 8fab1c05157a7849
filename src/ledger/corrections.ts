/** Carries out the corrections of meters that operators have asked for. */
import type { Ledger } from './ledger.ts';
import { tryWriterLock } from './store/identity.ts';
import { Reserver } from './writer/reserver.ts';

const TIMEOUT_MS = 5_000;
const STEP_MS = 20;

/**
 * Waits until a running ledger writer has applied what {@link Ledger.correct} has asked for, or applies it here where none runs.
 *
 * @returns false where the ledger writer could not do it yet; it goes on trying.
 */
export async function applyCorrections(ledger: Ledger, file: string): Promise<boolean> {
  // Elsewhere they take effect with their transaction.
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
