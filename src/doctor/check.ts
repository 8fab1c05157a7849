/** The results of the checks of `pagegate doctor`, and how they run: a check that fails does not end the others. */
import type { Config } from '../config/config.ts';
import { PagegateError } from '../errors.ts';
import { DAY_MS } from '../times.ts';

/** `problem`: pagegate will not work, or not safely. `warning`: it works, but not well, or not for long. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped';

export interface CheckOutcome {
  readonly status: Status;
  /** What was found. */
  readonly found: string;
  /** What to do about it; set for every warning and problem. */
  readonly advice?: string;
}

export interface CheckResult extends CheckOutcome {
  readonly id: string;
}

export interface Check {
  readonly id: string;
  /** Returns all findings, not only the first. */
  run(config: Config): CheckOutcome | readonly CheckOutcome[] | Promise<CheckOutcome | readonly CheckOutcome[]>;
}

export const ok = (found: string): CheckOutcome => ({ status: 'ok', found });
export const skipped = (found: string): CheckOutcome => ({ status: 'skipped', found });
export const warning = (found: string, advice: string): CheckOutcome => ({ status: 'warning', found, advice });
export const problem = (found: string, advice: string): CheckOutcome => ({ status: 'problem', found, advice });

/** A license or certificate that ends within this many days is a warning. */
export const SOON_DAYS = 30;
/** Returns the whole days in a duration. */
export const days = (ms: number): number => Math.floor(ms / DAY_MS);

/** Converts the error of a check into a finding. The message of a `PagegateError` is its advice. */
export function failed(error: unknown): CheckOutcome {
  if (error instanceof PagegateError) return problem(`${error.code}`, error.message);
  const { code, message } = error as NodeJS.ErrnoException;
  return problem(code ?? 'failure', `${message}; see docs/operations.md.`);
}

/** Runs all checks in order. A check with several findings has several results. */
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
