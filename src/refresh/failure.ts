/** Failures of the system while a store is changed, under the names that a person can look up. */
import { NO_SPACE } from '../builder/failure.ts';
import { PagegateError } from '../errors.ts';

/** What a call of the file system threw, as `build_no_space` or `store_unavailable`; anything else passes unchanged. */
export function explainFailure(error: unknown, store: string): unknown {
  if (!(error instanceof Error) || error instanceof PagegateError) return error;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return error;
  const name = NO_SPACE.has(code) ? 'build_no_space' : 'store_unavailable';
  return new PagegateError(name, `${store}: ${message}.`, { store, reason: code }, { cause: error });
}
