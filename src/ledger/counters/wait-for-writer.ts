/** Waiting for the ledger writer to follow a command. */
import { STATE } from './counters.ts';
import { readCounters } from './location.ts';

/** A ledger writer without a heartbeat for so long is not running; one that runs follows a command in less. */
const TIMEOUT_MS = 5_000;
const STEP_MS = 5;

/**
 * Waits, for some seconds at most, until a running ledger writer has told the workers of a revision, or of a later one; returns at once when
 * none runs. It blocks: for administration only.
 */
export function awaitPublished(
  ledgerFile: string,
  ledgerId: string,
  revision: number,
  options: { readonly untilReady?: boolean } = {},
): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const untilMs = performance.now() + TIMEOUT_MS;
  while (performance.now() < untilMs) {
    const counters = readCounters(ledgerFile, ledgerId, { headerOnly: true });
    if (counters === undefined || Date.now() - counters.status.heartbeatMs > TIMEOUT_MS) return;
    const isReady = options.untilReady !== true || counters.state === STATE.ready;
    // Another command's change may have come on top; the difference holds beyond 32 bits, too.
    const isFollowed = ((counters.revision - revision) | 0) >= 0;
    if (isFollowed && isReady) return;
    Atomics.wait(pause, 0, 0, STEP_MS);
  }
}
