/** Waiting for the ledger writer to follow a command. */

import { tryWriterLock } from '../store/identity.ts';
import { WRITER_STATE } from './counters.ts';
import { readCounters } from './location.ts';

/** A ledger writer without a heartbeat for so long is not running, or hangs; one that runs follows a command in less. */
const TIMEOUT_MS = 5_000;
const STEP_MS = 5;

/**
 * Waits, for some seconds at most, until a running ledger writer has told the workers of a revision, or of a later one; returns at once when
 * none runs. It blocks: for administration only.
 *
 * @returns false where a ledger writer lives, and has not told them.
 */
export function awaitPublished(
  ledgerFile: string,
  ledgerId: string,
  revision: number,
  options: { readonly untilReady?: boolean } = {},
): boolean {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const untilMs = performance.now() + TIMEOUT_MS;
  while (performance.now() < untilMs) {
    const counters = readCounters(ledgerFile, ledgerId, { headerOnly: true });
    if (counters === undefined) return true;
    if (Date.now() - counters.status.heartbeatMs > TIMEOUT_MS) break;
    const isReady = options.untilReady !== true || counters.state === WRITER_STATE.ready;
    // Another command's change may have come on top; the difference holds beyond 32 bits, too.
    const isFollowed = ((counters.revision - revision) | 0) >= 0;
    if (isFollowed && isReady) return true;
    Atomics.wait(pause, 0, 0, STEP_MS);
  }
  return !isLocked(ledgerFile);
}

/** Whether a ledger writer lives: it holds the lock, also while it hangs. */
function isLocked(ledgerFile: string): boolean {
  try {
    const release = tryWriterLock(ledgerFile);
    release?.();
    return release === undefined;
  } catch {
    // The change is made: that nobody can look is no failure of it.
    return false;
  }
}
