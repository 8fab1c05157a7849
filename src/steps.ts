/** Runs work either at once or in steps with other work in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that yields after each step and returns its result at the end. */
export type Steps<Result> = Generator<void, Result, void>;

/** Steps may block the event loop for this many milliseconds before other work gets a turn. */
const TURN_MS = 5;

/** Runs all steps at once. @throws whatever a step throws */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Runs the steps a few at a time, so that the thread can answer requests in between. @throws whatever a step throws */
export async function runInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  let startMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - startMs < TURN_MS) continue;
    await nextTurn();
    startMs = performance.now();
  }
}
