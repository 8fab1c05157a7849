/** Refusals: every status other than 200, with the body, the headers and the connection handling that the contract gives it. */
import { ERRORS, type ErrorCode } from '../../errors.ts';
import { http } from '../../platform/http.ts';
import type { HttpResponse } from '../uws.ts';
import { endAnswer } from './end-answer.ts';

export interface RefusalOptions {
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Added to the table's message. */
  readonly hint?: string;
  /** In seconds. 429 and 503 always carry one; this is the value where it is known. */
  readonly retryAfterSeconds?: number;
  /** Close the connection afterwards. */
  readonly close?: boolean;
  /** The answer to a HEAD has the headers and no body. */
  readonly bodiless?: boolean;
}

/** Without anything known, retry after this. */
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

/** The HTTP status of a code; a code that no client should ever see is an internal failure, 503. */
export function refusalStatus(code: ErrorCode): number {
  return ERRORS[code].status ?? 503;
}

/** Sends a refusal. The response must be corked or inside its handler. */
export function sendRefusal(res: HttpResponse, code: ErrorCode, options: RefusalOptions = {}): void {
  const status = refusalStatus(code);
  const body = refusalBody(code, options);
  res.writeStatus(`${status} ${http.STATUS_CODES[status] ?? ''}`);
  // One call with the lines of three headers: each call crosses into the transport.
  let headers = CONTENT_HEADERS;
  if (status === 429 || status === 503) {
    headers += `\r\nretry-after: ${options.retryAfterSeconds ?? RETRY_AFTER_SECONDS[code] ?? 1}`;
  }
  if (status === 405) headers += '\r\nallow: GET';
  res.writeHeader('content-type', headers);
  if (options.bodiless === true) res.endWithoutBody(body.length, options.close === true);
  else endAnswer(res, body, options.close === true);
}
