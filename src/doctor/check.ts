/** What a check of `pagegate doctor` says, and how checks are run so that one that fails does not end the others. */
import type { Config } from '../config/config.ts';
import { PagegateError } from '../errors.ts';
import { DAY_MS } from '../times.ts';

/** `problem`: it will not work, or not safely. `warning`: it works, but not for long or not well. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped';

export interface CheckOutcome {
  readonly status: Status;
  /** What was found. */
  readonly found: string;
  /** What to do about it; there for every warning and problem. */
  readonly advice?: string;
}

export interface CheckResult extends CheckOutcome {
  readonly id: string;
}

export interface Check {
  readonly id: string;
  /** What it found: all of it, not only the first. */
  run(config: Config): CheckOutcome | readonly CheckOutcome[] | Promise<CheckOutcome | readonly CheckOutcome[]>;
}

export const ok = (found: string): CheckOutcome => ({ status: 'ok', found });
export const skipped = (found: string): CheckOutcome => ({ status: 'skipped', found });
export const warning = (found: string, advice: string): CheckOutcome => ({ status: 'warning', found, advice });
export const problem = (found: string, advice: string): CheckOutcome => ({ status: 'problem', found, advice });

/** What ends within so many days is a warning. */
export const SOON_DAYS = 30;
/** Whole days in a time. */
export const days = (ms: number): number => Math.floor(ms / DAY_MS);

/** Turns what a check threw into a finding: our errors say themselves what to do. */
export function failed(error: unknown): CheckOutcome {
  if (error instanceof PagegateError) return problem(`${error.code}`, error.message);
  const { code, message } = error as NodeJS.ErrnoException;
  return problem(code ?? 'failure', `${message}; see docs/operations.md.`);
}

/** Runs all checks, in their order; a check that finds several things has several results. */
export async function runChecks(checks: readonly Check[], config: Config): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { id, run } of checks) {
    try {
      const findings = [await run(config)].flat();
      for (const finding of findings) results.push({ id, ...finding });
    } catch (error) {
      results.push({ id, ...failed(error) });
    }
  }
  return results;
}
