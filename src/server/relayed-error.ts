/** A failure that another process has told of, as code and message. */
import { ERRORS, type ErrorCode, PagegateError } from '../errors.ts';

/** The failure with its own code; where the code is not known here, with another one. */
export function relayedError(code: string, message: string, otherwise: ErrorCode): PagegateError {
  if (!Object.hasOwn(ERRORS, code)) return new PagegateError(otherwise, message);
  const sentence = ERRORS[code as ErrorCode].message;
  return new PagegateError(
    code as ErrorCode,
    message.startsWith(sentence) ? message.slice(sentence.length).trim() : message,
  );
}
