/** Whether the clock may be believed. A cycle that a wrong clock opened could never be closed again, so a leap is refused. */

import { LIMITS } from '../../limits.ts';
import { rfc3339 } from '../../times.ts';

/** How far ahead of the latest second seen the clock may be, in seconds: a machine that was off for a month goes on by itself. */
export const CLOCK_LEAP_SECONDS = LIMITS.clockLeapSeconds.value;

/** Why the clock is refused, in words; undefined when it may be believed. */
export function clockProblem(lastSeenSeconds: number, nowSeconds: number): string | undefined {
  if (lastSeenSeconds === 0 || nowSeconds <= lastSeenSeconds + CLOCK_LEAP_SECONDS) return undefined;
  const days = Math.floor((nowSeconds - lastSeenSeconds) / 86_400);
  return (
    `The clock says ${rfc3339(nowSeconds)}, ${days} days after the ledger was last used (${rfc3339(lastSeenSeconds)}): ` +
    'set the clock, or, if it is right, run `pagegate account accept-clock`.'
  );
}
