/** Errors that another process has reported as code and message. */
import { ERRORS, type ErrorCode, PagegateError } from '../errors.ts';

/** Recreates the error. If its code is unknown here, such as one of another version, the error gets the code `otherwise`. */
export function relayedError(code: string, message: string, otherwise: ErrorCode): PagegateError {
  if (!Object.hasOwn(ERRORS, code)) return new PagegateError(otherwise, message);
  const sentence = ERRORS[code as ErrorCode].message;
  return new PagegateError(
    code as ErrorCode,
    message.startsWith(sentence) ? message.slice(sentence.length).trim() : message,
  );
}
