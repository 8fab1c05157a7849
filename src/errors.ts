/**
 * Every failure a person or a client can meet, in one table: what it is called, which HTTP status and which exit code it has,
 * and what to do about it. `docs/errors.md` is checked against it in both directions.
 */

/** Exit codes of the program; stable across versions. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  bad_input: 3,
  negative: 4,
  corrupt: 5,
  refused: 6,
  environment: 7,
  busy: 8,
  interrupted: 130,
} as const;

type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface ErrorEntry {
  /** HTTP status, for the errors that the endpoint can answer. */
  readonly status?: number;
  readonly exit: ExitCode;
  /** When it happens, and what to do: one sentence a person can act on. */
  readonly message: string;
}

/** Checks a table of errors without widening its keys. */
const table = <K extends string>(entries: Record<K, ErrorEntry>): Readonly<Record<K, ErrorEntry>> => entries;

// Keep each group sorted by the step that raises it. A code, once released, never changes its meaning.
export const ERRORS = table({
  // program
  internal: {
    status: 503,
    exit: EXIT.unexpected,
    message: 'An unexpected failure; this is a defect in pagegate, please report it.',
  },
  usage: { exit: EXIT.usage, message: 'The command line is not understood; see --help.' },
  interrupted: {
    exit: EXIT.interrupted,
    message: 'Stopped by Ctrl-C or a termination signal; nothing half-done was left behind.',
  },

  // register
  register_unreadable: {
    exit: EXIT.environment,
    message: 'A register file cannot be read.',
  },

  // http: the transport and the request
  rate_limited: {
    status: 429,
    exit: EXIT.refused,
    message: 'Too many requests from this address within 60 seconds; wait as Retry-After says, then retry.',
  },
  not_found: { status: 404, exit: EXIT.negative, message: 'There is one endpoint here: GET /api/check.' },
  method_not_allowed: {
    status: 405,
    exit: EXIT.refused,
    message: 'Only GET is answered here; the method an agent intends goes into the parameter "method".',
  },
  body_not_allowed: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'A GET with a body is not accepted; put everything into the query.',
  },
  missing_key: {
    status: 401,
    exit: EXIT.refused,
    message: 'Send the API key in the header X-API-Key (or in the query as api_key).',
  },
  unknown_key: {
    status: 401,
    exit: EXIT.refused,
    message: 'This API key matches no account; correct the key before you retry.',
  },
  conflicting_credentials: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'Send exactly one API key: either the header X-API-Key, once, or the parameter api_key.',
  },
  not_activated: {
    status: 403,
    exit: EXIT.refused,
    message: 'The account is not activated; complete the subscription or ask your administrator.',
  },
  quota_exhausted: {
    status: 403,
    exit: EXIT.refused,
    message: 'The quota of this cycle is used up; wait for quota_resets_at or upgrade the plan.',
  },
  missing_input: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'Send the parameter "url" (or "domain") with a domain or a full URL.',
  },
  bad_input: { status: 400, exit: EXIT.bad_input, message: 'The value cannot be parsed into a domain.' },
  bad_encoding: { status: 400, exit: EXIT.bad_input, message: 'The query is not valid percent-encoded UTF-8.' },
  bad_method: { status: 400, exit: EXIT.bad_input, message: 'The parameter "method" is not an HTTP token.' },
  input_too_long: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'The value is longer than 8,192 bytes, or its domain longer than 253.',
  },
  conflicting_input: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'The parameters "url" and "domain" name different domains; send one.',
  },
  repeated_parameter: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'A query parameter is sent more than once; send it once.',
  },
  unknown_parameter: {
    status: 400,
    exit: EXIT.bad_input,
    message: 'A query parameter is not known; a value that has a query of its own must be percent-encoded.',
  },
  no_index: {
    status: 503,
    exit: EXIT.environment,
    message: 'No index is being served yet; retry with exponential backoff.',
  },
  record_corrupt: {
    status: 503,
    exit: EXIT.corrupt,
    message: 'The record in the index is damaged; the operator must verify and replace the index.',
  },
  ledger_unavailable: {
    status: 503,
    exit: EXIT.environment,
    message: 'The ledger cannot be asked, so nothing is served uncharged; retry with exponential backoff.',
  },
  shutting_down: {
    status: 503,
    exit: EXIT.environment,
    message: 'The server is stopping; retry on another connection.',
  },
});

export type ErrorCode = keyof typeof ERRORS;

/** Facts that make an error actionable: what, where, expected, got, what to do. Never a secret. */
export interface ErrorDetails {
  readonly [name: string]: string | number | boolean | null | readonly string[] | undefined;
}

/** A failure with a stable code. Its message is the table's sentence, followed by what happened here. */
export class PagegateError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, what = '', details: ErrorDetails = {}, options?: ErrorOptions) {
    super(what === '' ? ERRORS[code].message : `${ERRORS[code].message} ${what}`, options);
    this.name = 'PagegateError';
    this.code = code;
    this.details = details;
  }

  get exitCode(): ExitCode {
    return ERRORS[this.code].exit;
  }
}
