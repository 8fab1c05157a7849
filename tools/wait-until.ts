/** Waiting for what another program brings about. */
import { setTimeout as sleep } from 'node:timers/promises';

/** On a busy machine everything takes longer than one expects; only what hangs is to run into this. */
const DEADLINE_MS = 120_000;
const STEP_MS = 50;

/** Waits until something holds; a check that fails holds not yet. @throws Error after a deadline, with the reason where there is one */
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
