/** A domain or URL on the command line. */
import { errorCodeOf, parseTarget, remedyFor, type Target } from '../../domain/target.ts';
import { PagegateError } from '../../errors.ts';

/** Messages truncate values that are longer, in UTF-16 code units. */
const ECHO_MAX_LENGTH = 200;

/** Parses a domain or URL that a user typed. @throws PagegateError bad_input, input_too_long */
export function targetFrom(input: string): Target {
  const target = parseTarget(input);
  if (!('problem' in target)) return target;
  const { problem: reason } = target;
  const shown = input.length > ECHO_MAX_LENGTH ? `${input.slice(0, ECHO_MAX_LENGTH)}…` : input;
  const code = errorCodeOf(reason);
  if (code === 'input_too_long') throw new PagegateError(code, `Got ${JSON.stringify(shown)}.`, { input: shown });
  const got = `Got ${JSON.stringify(shown)} (${reason}). ${remedyFor(reason)}`;
  throw new PagegateError(code, got, { input: shown, reason });
}
