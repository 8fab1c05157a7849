/** Failures of the system during a build, by name. */
import { PagegateError } from '../errors.ts';

/** The disk is full, the user's share of it is, or a file may not grow any more (`ulimit -f`). */
export const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** The same error as a PagegateError where the system refused something; any other as it is. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof PagegateError || !('code' in error)) return error;
  const code = String(error.code);
  if (NO_SPACE.has(code)) return new PagegateError('build_no_space', `${error.message}.`, {}, { cause: error });
  if (/^E[A-Z0-9]+$/.test(code) && 'syscall' in error) {
    return new PagegateError('build_failed', `${error.message}.`, {}, { cause: error });
  }
  return error;
}
