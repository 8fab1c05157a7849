/**
 * Every failure that a person or a client can meet, in one table: its code, HTTP status, exit code, and a message that says what to do.
 * Tests check `docs/errors.md` against it in both directions.
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
  not_replaced: 9,
  interrupted: 130,
} as const;

type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface ErrorEntry {
  /** HTTP status, for the errors with which the endpoint can answer. */
  readonly status?: number;
  readonly exit: ExitCode;
  /** What happened, and what to do: one sentence that a person can act on. */
  readonly message: string;
}

/** Checks a table of errors without widening its keys. */
const table = <K extends string>(entries: Record<K, ErrorEntry>): Readonly<Record<K, ErrorEntry>> => entries;

// One table for each topic. A code, once released, never changes its meaning.

/** Errors of any command. */
const PROGRAM = table({
  internal: {
    status: 503,
    exit: EXIT.unexpected,
    message: 'An unexpected failure; this is a defect in pagegate, please report it.',
  },
  no_working_directory: {
    exit: EXIT.environment,
    message: 'The directory that the command was started in has been removed; change to another one and repeat.',
  },
  usage: { exit: EXIT.usage, message: 'The command line is not understood; see --help.' },
  interrupted: {
    exit: EXIT.interrupted,
    message: 'Stopped by Ctrl-C or a termination signal; nothing half-done was left behind.',
  },
  output_failed: {
    exit: EXIT.environment,
    message: 'Standard output cannot be written; if it goes to a file, free space on its disk.',
  },
});

/** Agent register files. */
const REGISTERS = table({
  register_unreadable: {
    exit: EXIT.environment,
    message: 'A register file cannot be read.',
  },
});

/** One index file: found, opened, read. */
const INDEXES = table({
  list_unreadable: {
    exit: EXIT.environment,
    message: 'The list of domains and URLs cannot be read; name a file of lines, or - for standard input.',
  },
  index_missing: {
    exit: EXIT.environment,
    message:
      'There is no index file at this path; serve a drop with `pagegate refresh DROP`, or build the file with `pagegate build`.',
  },
  index_unreadable: {
    exit: EXIT.environment,
    message:
      'The index file cannot be opened; check the path, and let this user read the file and enter the folders above it.',
  },
  index_not_a_file: {
    exit: EXIT.bad_input,
    message: 'An index is a regular file, not a directory, socket or device; name the .pgx file itself.',
  },
  index_unsafe_mode: {
    exit: EXIT.refused,
    message: 'The index can be changed by its group or by others, so it is not trusted; run chmod 0444 on it.',
  },
  index_not_recognized: {
    exit: EXIT.bad_input,
    message: 'The file is not a pagegate index: its first bytes are not those of one; check the path.',
  },
  index_newer_version: {
    exit: EXIT.refused,
    message: 'The index has a format version that this program does not know; upgrade pagegate or rebuild the index.',
  },
  index_older_version: {
    exit: EXIT.refused,
    message:
      'The index has a format that this program no longer reads; build it again from its drop, for example with pagegate refresh --rebuild.',
  },
  index_corrupt: {
    exit: EXIT.corrupt,
    message:
      'The index is damaged; build it again from its drop (what is served: pagegate refresh DROP --rebuild), or put a fresh copy in its place.',
  },
  index_changed: {
    exit: EXIT.corrupt,
    message:
      'The index file was written to, or truncated, while it was open; replace an index by renaming a complete file over it, never by writing into it.',
  },
  index_out_of_order: {
    exit: EXIT.unexpected,
    message: 'Records must reach the index in hash order and only once each; this is a defect in the builder.',
  },
  index_limit: {
    exit: EXIT.bad_input,
    message: 'The records exceed what the index format can hold.',
  },
  index_closed: { status: 503, exit: EXIT.unexpected, message: 'The index was closed while it was still in use.' },
  mapping_failed: {
    exit: EXIT.environment,
    message:
      'A file could not be mapped into memory; check its size, the address space limit (ulimit -v) and free memory.',
  },
});

/** A request to the endpoint, in the order of its checks. */
const REQUESTS = table({
  rate_limited: {
    status: 429,
    exit: EXIT.refused,
    message:
      'Too many requests from this address within 60 seconds; wait for the seconds in the header Retry-After, then retry.',
  },
  not_found: { status: 404, exit: EXIT.negative, message: 'The only endpoint is GET /api/check.' },
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
    message: 'No index is being served; retry with exponential backoff.',
  },
  record_corrupt: {
    status: 503,
    exit: EXIT.corrupt,
    message: 'The record in the index is damaged; the operator must verify and replace the index.',
  },
  ledger_unavailable: {
    status: 503,
    exit: EXIT.environment,
    message:
      'The ledger cannot be used, and nothing is served uncharged; clients retry with exponential backoff, operators run "pagegate doctor".',
  },
  shutting_down: {
    status: 503,
    exit: EXIT.environment,
    message: 'The server is stopping; retry on another connection.',
  },
});

/** A delivered drop: manifest, signature, parts. */
const DROPS = table({
  manifest_missing: {
    exit: EXIT.bad_input,
    message: 'The drop has no manifest that can be read; point the command at the folder that holds manifest.json.',
  },
  manifest_invalid: {
    exit: EXIT.bad_input,
    message:
      'The manifest of the drop is not valid; see docs/drop-format.md, or make one with `pagegate drop manifest`.',
  },
  drop_signature_file: {
    exit: EXIT.bad_input,
    message:
      'The signature is not added, because no licensee could read the resulting signature file; remove manifest.json.sig, or sign without --add to replace it.',
  },
  drop_unsigned: {
    exit: EXIT.refused,
    message: 'The drop has no signature (manifest.json.sig); ask the vendor for it, or accept it with --unsigned.',
  },
  drop_signature_invalid: {
    exit: EXIT.refused,
    message:
      'No trusted key signed this manifest: it was changed in transit, or another sender made it; fetch it again.',
  },
  no_trusted_keys: {
    exit: EXIT.environment,
    message:
      "The configuration names no trusted key, so no signature can be checked; add the vendor's public key to it.",
  },
  trusted_key_invalid: { exit: EXIT.environment, message: 'A trusted key is not an Ed25519 public key in PEM.' },
  signing_key_invalid: {
    exit: EXIT.bad_input,
    message: 'The signing key is not an Ed25519 private key in PEM (PKCS #8).',
  },
  drop_file_name: {
    exit: EXIT.refused,
    message: 'The manifest lists a file name twice; the drop is refused, ask the vendor.',
  },
  drop_file_kind: {
    exit: EXIT.refused,
    message: 'The drop holds a link, a folder or a device where a regular file must be; copy the files themselves.',
  },
  drop_too_large: {
    exit: EXIT.refused,
    message:
      'The drop, or what it unpacks to, is larger than its limits allow; it is refused, ask the vendor (limits: docs/drop-format.md).',
  },
  drop_no_parts: {
    exit: EXIT.bad_input,
    message:
      'There are no parts to list in a manifest; name the folder that holds the *.ndjson, *.ndjson.gz or *.ndjson.zst files.',
  },
  drop_part_missing: { exit: EXIT.bad_input, message: 'A part that the manifest lists is missing; fetch it again.' },
  drop_part_size: {
    exit: EXIT.bad_input,
    message: 'The size of a part differs from its size in the manifest; the part arrived incomplete, fetch it again.',
  },
  drop_part_checksum: {
    exit: EXIT.bad_input,
    message: 'The checksum of a part differs from the manifest; the part was damaged or changed, fetch it again.',
  },
  drop_part_truncated: {
    exit: EXIT.bad_input,
    message: 'A part cannot be unpacked to its end; it arrived incomplete, fetch it again.',
  },
  notice_unreadable: {
    exit: EXIT.environment,
    message: 'The notice for the manifest cannot be read; name a text file of at most 1 MiB.',
  },
  drop_not_written: {
    exit: EXIT.environment,
    message:
      'The manifest or its signature cannot be written into the drop; make the folder writable for this user, or free space.',
  },
  drop_part_unsupported: {
    exit: EXIT.refused,
    message:
      'A part is compressed in a way that this program cannot unpack; ask the vendor to compress it in another way.',
  },
  drop_changed: {
    exit: EXIT.refused,
    message: 'The drop changed while it was read; leave the folder alone during a refresh, then repeat.',
  },
  drop_older_revision: {
    exit: EXIT.refused,
    message: 'The drop is not newer than what is served; accept an older one only on purpose, with --rollback.',
  },
  drop_other_dataset: {
    exit: EXIT.refused,
    message:
      'The drop belongs to a different dataset from the one that is served; change it only on purpose, with --other-dataset.',
  },
  drop_vocabulary: {
    exit: EXIT.refused,
    message: 'The drop needs a page-type vocabulary that this program does not have; upgrade the program first.',
  },
  drop_kind: { exit: EXIT.refused, message: 'An index is built from a full drop only; ask the vendor for one.' },
  drop_empty: {
    exit: EXIT.refused,
    message:
      'No line of the drop yields a record, so it is not served; list what is rejected with `pagegate build DROP --out FILE --rejects FILE`, and ask the vendor.',
  },
  drop_part_records: {
    exit: EXIT.bad_input,
    message: 'A part does not have as many lines as the manifest says; fetch the drop again, or ask the vendor.',
  },
});

/** The store of index generations, and what is switched in it. */
const REFRESHES = table({
  refresh_busy: {
    exit: EXIT.busy,
    message: 'Another refresh, rollback or prune is running on this index store; wait until it is done, then repeat.',
  },
  store_unavailable: {
    exit: EXIT.environment,
    message:
      'The index store cannot be read or written; make the state directory belong to this user, or repair the disk.',
  },
  store_damaged: {
    exit: EXIT.corrupt,
    message: 'The index store is not as pagegate left it; see the operations page before you repair it.',
  },
  generation_missing: {
    exit: EXIT.bad_input,
    message: 'There is no such generation; see "pagegate generations list".',
  },
  generation_damaged: {
    exit: EXIT.corrupt,
    message: 'The generation did not pass verification and is not activated; build it again from its drop.',
  },
  nothing_to_roll_back: {
    exit: EXIT.negative,
    message:
      'No older generation is kept that was not rolled back before; refresh from an older drop with --rollback instead.',
  },
});

/** The configuration, the server process and what it serves. */
const CONFIGURATION = table({
  config_unreadable: {
    exit: EXIT.bad_input,
    message:
      'The configuration file cannot be read; check the path, and let this user read the file and enter the folders above it.',
  },
  config_invalid: {
    exit: EXIT.bad_input,
    message: 'The configuration is not valid; docs/configuration.md lists every setting.',
  },
  state_unavailable: {
    exit: EXIT.environment,
    message: 'The state directory cannot be read or written; make it belong to this user, or repair the disk.',
  },
  transport_unavailable: {
    exit: EXIT.environment,
    message: 'The HTTP transport (uWebSockets.js) cannot be loaded on this host; run "pagegate doctor".',
  },
  listen_failed: {
    exit: EXIT.environment,
    message: 'The server cannot listen; another program may use the port, or this host does not have the address.',
  },
  plain_http_refused: {
    exit: EXIT.refused,
    message: 'Without TLS the server listens on loopback only; configure tls, or set server.plain_http_anywhere.',
  },
  tls_unusable: {
    exit: EXIT.environment,
    message: 'The certificate or its key cannot be used; a running server keeps the one it has.',
  },
  index_refused: {
    exit: EXIT.refused,
    message: 'The index is not activated; a running server keeps the one it has.',
  },
  decision_log_failed: {
    exit: EXIT.environment,
    message:
      'The decision log cannot be written, and lines are dropped until it can; free its disk, or make its folder belong to the user of the server.',
  },
  server_not_running: {
    exit: EXIT.negative,
    message:
      'No server answers on the socket of this state directory; start it with "pagegate serve", or name its configuration with --config.',
  },
  server_busy: {
    exit: EXIT.busy,
    message: 'The running server has too many commands at once, or is shutting down; try again in a moment.',
  },
  primary_hung: {
    exit: EXIT.environment,
    message: 'The primary process of the server does not answer; look at the load and at the disk of the host.',
  },
  server_forbidden: {
    exit: EXIT.refused,
    message:
      'This user may not open the socket of the server; run the command as the user of the server, or as a member of its group.',
  },
  server_running: {
    exit: EXIT.busy,
    message:
      'Another server already runs on this state directory; stop that one first ("pagegate drain"), or replace it with "pagegate restart".',
  },
  restart_busy: {
    exit: EXIT.busy,
    message:
      'The server is already being restarted or stopped; wait until that is done, and look at `pagegate status`.',
  },
  restart_failed: {
    exit: EXIT.not_replaced,
    message: 'The new server did not become ready; the running one continues as before.',
  },
  restart_needs_stop: {
    exit: EXIT.refused,
    message:
      'The running server cannot hand over to a new one and continues as before; take a backup, stop the server, and start it.',
  },
  restart_stopped: {
    exit: EXIT.negative,
    message:
      'The server was told to stop before a new one had taken over, so it stops; start it again with "pagegate serve".',
  },
  server_refused: { exit: EXIT.refused, message: 'The running server did not carry out the command.' },
  worker_failed: { exit: EXIT.environment, message: 'A worker of the server could not start.' },
});

/** Accounts, keys, plans and the file that holds them. */
const ACCOUNTS = table({
  account_changed: {
    exit: EXIT.refused,
    message: 'The account was changed since you looked at it, so nothing was done; look at it again, then decide.',
  },
  too_many_keys: {
    exit: EXIT.refused,
    message: 'The account has as many valid keys as one may have; revoke some, or rotate without an overlap.',
  },
  account_exists: { exit: EXIT.refused, message: 'An account with this name exists; choose another name.' },
  account_not_found: { exit: EXIT.negative, message: 'No account has this name; see pagegate account list.' },
  account_state: { exit: EXIT.refused, message: "The account's state does not allow this." },
  api_key_unreadable: {
    exit: EXIT.environment,
    message: 'The file with the API key cannot be read; check the path, and let this user read the file.',
  },
  backup_failed: {
    exit: EXIT.environment,
    message: 'The backup cannot be written; check the path and the free space. Nothing half-done was left behind.',
  },
  backup_exists: { exit: EXIT.refused, message: 'A backup never replaces a file; choose another name.' },
  bad_account_name: {
    exit: EXIT.bad_input,
    message:
      'An account name has 1 to 64 characters of a-z, 0-9, ".", "_", "@" and "-", and begins with a letter or digit.',
  },
  bad_key_file: {
    exit: EXIT.environment,
    message: 'The file with the encryption key of the API keys cannot be used; restore it from where you keep it.',
  },
  bad_overlap: { exit: EXIT.bad_input, message: 'The overlap of a key rotation is a duration from 0 to 30 days.' },
  bad_correction: { exit: EXIT.bad_input, message: 'The correction of a meter does not fit the account.' },
  bad_payment_reference: {
    exit: EXIT.bad_input,
    message: 'A payment reference has 1 to 128 printable ASCII characters and does not begin with a space.',
  },
  bad_plan_catalogue: {
    exit: EXIT.bad_input,
    message: 'The plan catalog does not match its schema; correct the file.',
  },
  bad_plan_limit: { exit: EXIT.bad_input, message: 'The limit does not fit the plan.' },
  key_not_found: { exit: EXIT.negative, message: 'No such API key; see pagegate account show.' },
  key_not_readable: {
    exit: EXIT.refused,
    message:
      'The API key still works but cannot be shown, because its encryption key is not on this host; rotate the key.',
  },
  ledger_clock: {
    exit: EXIT.environment,
    message:
      'The clock is far ahead of the latest time that the ledger has seen, and a cycle that is opened too early cannot be closed again.',
  },
  bad_ledger_url: {
    exit: EXIT.bad_input,
    message: 'The URL of the ledger in PostgreSQL is not valid; nothing was opened.',
  },
  node_alive: {
    exit: EXIT.refused,
    message: 'The node was alive moments ago; stop it, then retire it.',
  },
  node_not_found: { exit: EXIT.negative, message: 'The fleet has no such node.' },
  move_refused: { exit: EXIT.refused, message: 'The ledger was not moved; source and target are unchanged.' },
  fleet_only: { exit: EXIT.refused, message: 'This command is for a fleet: set ledger.url.' },
  not_in_a_fleet: {
    exit: EXIT.refused,
    message: 'In a fleet the ledger is in PostgreSQL; use its own tools for this, such as pg_dump.',
  },
  ledger_moved: {
    exit: EXIT.refused,
    message: 'This ledger was moved and is no longer used; open the one that it was moved to.',
  },
  ledger_in_use: {
    exit: EXIT.busy,
    message: 'Another server uses this ledger; stop it first, or give this one a state_dir of its own.',
  },
  ledger_on_network: {
    exit: EXIT.refused,
    message: 'The ledger is refused on a network file system, where locks and shared memory do not work reliably.',
  },
  ledger_version: {
    exit: EXIT.environment,
    message:
      'The ledger was written by another version of pagegate; use the newer program, or open it for writing once.',
  },
  no_installation: {
    exit: EXIT.negative,
    message:
      'There is no installation in this state directory: check --state-dir and state_dir; a new one begins with `pagegate license install FILE`.',
  },
  no_ledger: {
    exit: EXIT.negative,
    message:
      'There is no ledger here yet: the first `pagegate account create NAME` makes it; check --state-dir if there should be one.',
  },
  payment_known: {
    exit: EXIT.refused,
    message: 'A payment with this reference is already recorded; each payment counts once.',
  },
  restore_refused: { exit: EXIT.refused, message: 'The backup was not restored; the ledger is unchanged.' },
  too_many_accounts: { exit: EXIT.refused, message: 'A ledger holds at most 65,535 accounts.' },
  unknown_plan: { exit: EXIT.bad_input, message: 'No plan has this name; see pagegate plan list.' },
});

/** The console and its users. */
const CONSOLE = table({
  bad_console_user: {
    exit: EXIT.bad_input,
    message:
      'A user of the console has a name of 1 to 64 characters of a-z, 0-9, ".", "_", "@" and "-", and the role operator or viewer.',
  },
  bad_password: {
    exit: EXIT.bad_input,
    message: 'A password has 12 to 256 characters and is not easily guessed.',
  },
  console_busy: { exit: EXIT.busy, message: 'The console has too much to do at once; try again in a moment.' },
  console_last_operator: {
    exit: EXIT.refused,
    message: 'The console needs at least one operator: make another user an operator first.',
  },
  console_unavailable: {
    exit: EXIT.environment,
    message: 'The file or the listener of the console cannot be used; lookups go on without it.',
  },
  console_user_exists: {
    exit: EXIT.refused,
    message: 'A user of the console already has this name; choose another name.',
  },
  console_user_not_found: {
    exit: EXIT.negative,
    message: 'No user of the console has this name; see pagegate console user list.',
  },
});

/** License files and their keys. */
const LICENSES = table({
  bad_license: { exit: EXIT.bad_input, message: 'The license file is not a pagegate license, or it was altered.' },
  key_pair_not_written: {
    exit: EXIT.environment,
    message: 'The key pair was not written; choose a writable folder, and a name that is not in use.',
  },
  bad_license_key: { exit: EXIT.bad_input, message: 'The file does not hold a usable Ed25519 key in PEM form.' },
  license_missing: { exit: EXIT.refused, message: 'No license is installed; see pagegate license install.' },
  license_unreadable: {
    exit: EXIT.environment,
    message:
      'The license file cannot be read; check the path, and let this user read the file and enter the folders above it.',
  },
  license_not_entitled: { exit: EXIT.refused, message: 'The license does not cover this index; it is not activated.' },
  license_untrusted: { exit: EXIT.refused, message: 'The license is signed by a key that is not trusted here.' },
});

/** A drop becomes an index file. */
const BUILDS = table({
  build_no_space: {
    exit: EXIT.environment,
    message:
      'There is not enough free space for the build; free some, for example with `pagegate prune`, or use a larger disk.',
  },
  build_path: {
    exit: EXIT.bad_input,
    message: 'A path that the build would write to is not usable; correct it.',
  },
  build_output_exists: {
    exit: EXIT.refused,
    message: 'A path that the build would write to already exists and is not replaced; choose another.',
  },
  build_too_large: {
    exit: EXIT.refused,
    message: 'The drop has more entries than one index or one step of its build can hold; split the data set.',
  },
  build_failed: {
    exit: EXIT.environment,
    message: 'The build could not read or write its files; nothing half-done was left behind.',
  },
});

/** Policy files and cases. */
const POLICIES = table({
  policy_missing: {
    exit: EXIT.environment,
    message: 'A policy file cannot be read; without it nothing is judged, so nothing is served.',
  },
  policy_invalid: {
    exit: EXIT.bad_input,
    message: 'A policy file is not valid; correct it, the policy in force stays as it is.',
  },
  policy_no_effect: {
    exit: EXIT.negative,
    message: 'Entries of the policy can never match; remove them, or the entries that shadow them.',
  },
  policy_cases_failed: {
    exit: EXIT.negative,
    message: 'Test cases of the policy did not get the expected verdicts.',
  },
});

/** Every code under its topic, in the order of docs/errors.md. */
export const ERROR_TOPICS = {
  Requests: REQUESTS,
  'Accounts, keys and the ledger': ACCOUNTS,
  'Configuration and server': CONFIGURATION,
  Drops: DROPS,
  Builds: BUILDS,
  'Refresh, rollback, prune': REFRESHES,
  'Index files': INDEXES,
  Policy: POLICIES,
  Console: CONSOLE,
  License: LICENSES,
  'Agent register': REGISTERS,
  'Every command': PROGRAM,
} as const;

type Topics = typeof ERROR_TOPICS;
export type ErrorCode = { [T in keyof Topics]: keyof Topics[T] }[keyof Topics];

/** Every code. */
export const ERRORS = Object.assign({}, ...Object.values(ERROR_TOPICS)) as Readonly<Record<ErrorCode, ErrorEntry>>;

/** Facts that make an error actionable: what, where, expected, got, what to do. Never a secret. Their names are printed: snake_case. */
export interface ErrorDetails {
  readonly [name: Lowercase<string>]: string | number | boolean | null | readonly string[] | undefined;
}

/** A failure with a stable code. Its message is the table's sentence, followed by what happened here. */
export class PagegateError extends Error {
  readonly code: ErrorCode;
  /** What happened in this case: the message without the table's sentence. */
  readonly what: string;
  readonly details: ErrorDetails;

  /**
   * @param what what happened in this case; it follows the table's sentence.
   * @param details facts for programs: paths, numbers, the error code of the system. Never a secret.
   */
  constructor(code: ErrorCode, what = '', details: ErrorDetails = {}, options?: ErrorOptions) {
    super(what === '' ? ERRORS[code].message : `${ERRORS[code].message} ${what}`, options);
    this.name = 'PagegateError';
    this.code = code;
    this.what = what;
    this.details = details;
  }

  get exitCode(): ExitCode {
    return ERRORS[this.code].exit;
  }
}

/** Returns the message of an error; anything else that was thrown, as text. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The disk is full, the user's disk quota is used up, or a file has reached its size limit (`ulimit -f`). */
const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

export interface SystemFailureOptions {
  /** What the message calls the file; by default its path. */
  readonly name?: string;
  /** The code if no space is left, which needs a different remedy from other failures. */
  readonly noSpaceCode?: ErrorCode;
}

/**
 * Converts the error of a system call into a `PagegateError` that a person can look up. Returns anything else unchanged.
 *
 * @param path the file that the call worked on; it goes into `details`, with the error code of the system as `reason`.
 */
export function fromSystem(code: ErrorCode, path: string, error: unknown, options: SystemFailureOptions = {}): unknown {
  if (!(error instanceof Error) || error instanceof PagegateError) return error;
  const { code: reason, syscall, message } = error as NodeJS.ErrnoException;
  if (reason === undefined || syscall === undefined) return error;
  const { name = path, noSpaceCode = code } = options;
  const known = NO_SPACE.has(reason) ? noSpaceCode : code;
  return new PagegateError(known, `${name}: ${message}.`, { path, reason }, { cause: error });
}
