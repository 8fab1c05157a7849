/** Sends refusals: every status other than 200, with its body, headers and connection handling. */
import { ERRORS, type ErrorCode } from '../../errors.ts';
import { http } from '../../platform/http.ts';
import type { HttpResponse } from '../uws.ts';
import { endAnswer } from './end-answer.ts';

export interface RefusalOptions {
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Added to the table's message. */
  readonly hint?: string;
  /** `Retry-After` in seconds, if known. 429 and 503 always have the header. */
  readonly retryAfterSeconds?: number;
  /** Whether to close the connection afterwards. */
  readonly close?: boolean;
  /** Whether to send no body, as for a HEAD request. */
  readonly bodiless?: boolean;
}

/** `Retry-After` in seconds, if nothing better is known. */
const RETRY_AFTER_SECONDS: Partial<Record<ErrorCode, number>> = { no_index: 5, record_corrupt: 60 };

export const CONTENT_HEADERS = 'application/json\r\ncache-control: no-store';

const plain = new Map<ErrorCode, Buffer>();

function refusalBody(code: ErrorCode, options: RefusalOptions = {}): Buffer {
  if (options.fields === undefined && options.hint === undefined) {
    let bytes = plain.get(code);
    if (bytes === undefined) {
      bytes = encode(code, '', {});
      plain.set(code, bytes);
    }
    return bytes;
  }
  return encode(code, options.hint ?? '', options.fields ?? {});
}

function encode(code: ErrorCode, hint: string, fields: Readonly<Record<string, unknown>>): Buffer {
  const { message } = ERRORS[code];
  return Buffer.from(JSON.stringify({ error: code, message: hint === '' ? message : `${message} ${hint}`, ...fields }));
}

/** The HTTP status of a code. A code that no client should ever see is an internal failure, 503. */
export function refusalStatus(code: ErrorCode): number {
  return ERRORS[code].status ?? 503;
}

/** Sends a refusal. The response must be corked or inside its handler. */
export function sendRefusal(res: HttpResponse, code: ErrorCode, options: RefusalOptions = {}): void {
  const status = refusalStatus(code);
  const body = refusalBody(code, options);
  res.writeStatus(`${status} ${http.STATUS_CODES[status] ?? ''}`);
  // One call writes three headers, because each call crosses into native code.
  let headers = CONTENT_HEADERS;
  if (status === 429 || status === 503) {
    headers += `\r\nretry-after: ${options.retryAfterSeconds ?? RETRY_AFTER_SECONDS[code] ?? 1}`;
  }
  if (status === 405) headers += '\r\nallow: GET';
  res.writeHeader('content-type', headers);
  if (options.bodiless === true) res.endWithoutBody(body.length, options.close === true);
  else endAnswer(res, body, options.close === true);
}
