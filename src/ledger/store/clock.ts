/** Decides whether the clock can be trusted. A leap is refused, because a cycle that a wrong clock opened could never be closed again. */

import { LIMITS } from '../../limits.ts';
import { rfc3339 } from '../../times.ts';

/** How far the clock may be ahead of the latest second seen, in seconds. A machine that was off for a month still resumes by itself. */
export const CLOCK_LEAP_SECONDS = LIMITS.clockLeapSeconds.value;

/** Why the clock is refused, in words; undefined if it can be trusted. */
export function clockProblem(lastSeenSeconds: number, nowSeconds: number): string | undefined {
  if (lastSeenSeconds === 0 || nowSeconds <= lastSeenSeconds + CLOCK_LEAP_SECONDS) return undefined;
  const days = Math.floor((nowSeconds - lastSeenSeconds) / 86_400);
  return (
    `The clock says ${rfc3339(nowSeconds)}, ${days} days after the ledger was last used (${rfc3339(lastSeenSeconds)}): ` +
    'set the clock, or, if it is right, run `pagegate account accept-clock`.'
  );
}
