/** A domain or URL on the command line. */
import { parseTarget, remedyFor, type Target } from '../../domain/target.ts';
import { PagegateError } from '../../errors.ts';

/** Reads what somebody typed. @throws PagegateError bad_input */
export function targetFrom(input: string): Target {
  const target = parseTarget(input);
  if (!('problem' in target)) return target;
  const { problem: reason } = target;
  const got = `Got ${JSON.stringify(input)} (${reason}). ${remedyFor(reason)}`;
  throw new PagegateError('bad_input', got, { input, reason });
}
