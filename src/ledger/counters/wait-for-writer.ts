/** Waits until the ledger writer has applied a command's change. */

import { tryWriterLock } from '../store/identity.ts';
import { WRITER_STATE } from './counters.ts';
import { readCounters } from './location.ts';

/** A ledger writer without a heartbeat for this long is not running, or hangs. One that runs applies a change sooner. */
const TIMEOUT_MS = 5_000;
const STEP_MS = 5;

/**
 * Waits, at most a few seconds, until a running ledger writer has published a revision, or a later one, to the workers. Returns at once if
 * none runs. It blocks the event loop, so it is for administration only.
 *
 * @returns false if a ledger writer runs and has not published it.
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
    // The published revision may be a later one, of another command. The comparison also works after an overflow of 32 bits.
    const isFollowed = ((counters.revision - revision) | 0) >= 0;
    if (isFollowed && isReady) return true;
    Atomics.wait(pause, 0, 0, STEP_MS);
  }
  return !isLocked(ledgerFile);
}

/** Whether a ledger writer runs: it holds the lock, even while it hangs. */
function isLocked(ledgerFile: string): boolean {
  try {
    const release = tryWriterLock(ledgerFile);
    release?.();
    return release === undefined;
  } catch {
    // The change itself succeeded, so an error of this check must not fail it.
    return false;
  }
}
