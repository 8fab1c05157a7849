/** Work that is done in one go, or in steps, so that other work is done between them. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that stops after each step, and returns its result at the end. */
export type Steps<Result> = Generator<void, Result, void>;

/** How long steps may hold up the thread before other work has its turn. */
const TURN_MS = 5;

/** Does all steps in one go. @throws what a step throws */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does the steps a few at a time; the thread answers requests between. @throws what a step throws */
export async function runInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  let beganMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - beganMs < TURN_MS) continue;
    await nextTurn();
    beganMs = performance.now();
  }
}
