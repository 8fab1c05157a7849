/** Waits for something that another program does. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Generous, because everything takes longer on a busy machine. Only what hangs should reach it. */
const DEADLINE_MS = 120_000;
const STEP_MS = 50;

/** Waits until a check returns true. A check that rejects counts as false. @throws Error after the deadline, with the last rejection's message */
export async function waitUntil(what: string, check: () => Promise<boolean>, deadlineMs = DEADLINE_MS): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  let reason = '';
  const holds = (): Promise<boolean> =>
    check().catch((error: Error) => {
      reason = `: ${error.message}`;
      return false;
    });
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${deadlineMs / 1000} s${reason}`);
    await sleep(STEP_MS);
  }
}
