/** The 30-day quota cycle: cycle n covers [start + n·30 d, start + (n+1)·30 d), in whole seconds, UTC. */
import { LIMITS } from '../limits.ts';

/** Length of a cycle, in seconds. */
export const CYCLE_SECONDS = LIMITS.cycleSeconds.value;

/** The second at which a cycle begins. The anchor is the second of the first payment; cycle 0 begins there. */
export function cycleStart(anchorSeconds: number, cycle: number): number {
  return anchorSeconds + cycle * CYCLE_SECONDS;
}

/** The second at which a cycle ends and the next one begins. */
export function cycleEnd(anchorSeconds: number, cycle: number): number {
  return cycleStart(anchorSeconds, cycle + 1);
}

/** The cycle that a time falls into. Never below 0, so that a clock before the anchor does not open a cycle of its own. */
export function cycleAt(anchorSeconds: number, nowSeconds: number): number {
  return Math.max(0, Math.floor((nowSeconds - cycleStart(anchorSeconds, 0)) / CYCLE_SECONDS));
}

/** The day (UTC) of a time in seconds, as a number of days since 1970-01-01. */
export function dayOf(seconds: number): number {
  return Math.floor(seconds / 86_400);
}

/** Formats a number of days since 1970-01-01 as YYYY-MM-DD. */
export function dayName(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}
