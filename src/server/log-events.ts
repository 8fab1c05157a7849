/**
 * The table of all events that the server can write to its log. The log accepts no other event and no other field, and the reference page is
 * generated from this table.
 */

export type LogLevel = 'error' | 'warn' | 'info';

export interface LogEventEntry {
  readonly level: LogLevel;
  /** When the line is written, in one sentence. */
  readonly meaning: string;
  /** Its fields besides `time`, `level` and `event`, each with its meaning. A field that does not apply is left out of the line. */
  readonly fields: Readonly<Record<Lowercase<string>, string>>;
  /** What an operator should do. Empty if nothing. */
  readonly action: string;
}

/** Fields of every line about a worker process. */
const WORKER = { worker: 'number of the worker, from 0', pid: 'its process id' } as const;

const FAILURE = {
  code: 'the error code',
  message: 'what happened, in words',
  stack: 'where in the program, for an unexpected failure',
} as const;

/** Type-checks the table without widening its names and fields. */
const table = <const T extends Readonly<Record<string, LogEventEntry>>>(entries: T): T => entries;

export const LOG_EVENTS = table({
  // the server as a whole
  listening: {
    level: 'info',
    meaning: 'The server answers lookups.',
    fields: {
      address: 'where',
      workers: 'how many workers',
      admin_port: 'port of the admin listener; null without one',
    },
    action: '',
  },
  stopping: {
    level: 'info',
    meaning: 'The server is stopping; it answers open requests first.',
    fields: {},
    action: '',
  },
  stopped: { level: 'info', meaning: 'The server has stopped.', fields: {}, action: '' },
  restarting: { level: 'info', meaning: 'The server starts its successor.', fields: {}, action: '' },
  restart_failed: {
    level: 'error',
    meaning: 'The new server did not become or stay ready; this one continues as before.',
    fields: FAILURE,
    action: 'Follow the message and the log of the new server, then run "pagegate restart" again.',
  },
  handed_over: {
    level: 'info',
    meaning: 'Another server has taken over; this one answers open requests, then ends.',
    fields: { pid: "the other server's process id", version: 'its version' },
    action: '',
  },
  taken_over: {
    level: 'info',
    meaning: 'This server has taken over from the one that started it.',
    fields: { alone: 'true if that one ended before it had handed everything to this one' },
    action: '',
  },
  notify_failed: {
    level: 'warn',
    meaning: 'The state of the service could not be reported to systemd.',
    fields: { errno: "the system's error number" },
    action: 'Look at NOTIFY_SOCKET in the environment of the service.',
  },
  admin_not_on_loopback: {
    level: 'warn',
    meaning: 'The admin listener, which has no authentication, listens on an address that others can reach.',
    fields: { host: 'the address' },
    action: 'Set admin.host to 127.0.0.1, or let a firewall block everybody but your monitoring.',
  },
  warning: {
    level: 'warn',
    meaning: 'Something needs attention, although lookups are answered; /readyz lists it as long as it lasts.',
    fields: { kind: 'certificate, withdrawn, license, ledger, quota or disk', warning: 'what, in words' },
    action: 'Follow the text.',
  },
  warning_ended: {
    level: 'info',
    meaning: 'The problem of an earlier line `warning` is over.',
    fields: { kind: 'as there', warning: 'as there' },
    action: '',
  },
  lines_suppressed: {
    level: 'warn',
    meaning: 'One event had more lines than the log takes in that time; the rest were left out.',
    fields: { of: 'the event', count: 'how many lines were left out', seconds: 'in how many seconds' },
    action: 'See the action of that event.',
  },

  // ledger
  ledger_ready: { level: 'info', meaning: 'Lookups can be charged.', fields: {}, action: '' },
  ledger_unavailable: {
    level: 'error',
    meaning: 'Lookups cannot be charged. Reserved lookups can still be used; then the answer is 503.',
    fields: { reason: 'why, in words' },
    action: 'Follow the reason: free the disk, restore the file, correct the clock. Service then resumes by itself.',
  },
  ledger_writer_killed: {
    level: 'error',
    meaning: 'The ledger writer sent no heartbeat and was killed; another one continues from what it left.',
    fields: { pid: 'its process id', reason: 'why, in words' },
    action: 'Look at the disk of the ledger when it happens again.',
  },

  // index
  index_in_use: {
    level: 'info',
    meaning: 'A worker serves this index from now on.',
    fields: { data: 'index generation and policy revision', records: 'records in the index' },
    action: '',
  },
  index_refused: {
    level: 'error',
    meaning: 'The current index was refused; the one that was served before stays in use.',
    fields: FAILURE,
    action: 'Follow the message; "pagegate verify" examines the file, "pagegate rollback" goes back.',
  },
  index_dropped: {
    level: 'error',
    meaning:
      'The file of the index that is served was written to or cut. It is not served any more: lookups are answered 503.',
    fields: FAILURE,
    action:
      'Put a whole index in its place as pagegate refresh does, by renaming: it is then served within server.poll_seconds. Find out what wrote to the file.',
  },
  index_kept: {
    level: 'warn',
    meaning: 'A restarted worker serves the index of the other workers, since the current file is refused.',
    fields: { reason: 'why the file is refused' },
    action: 'As for index_refused.',
  },
  index_warming: {
    level: 'info',
    meaning: 'The index is read into memory before it is served.',
    fields: { generation: 'its generation', percent: 'how much was read' },
    action: '',
  },
  unicode_differs: {
    level: 'warn',
    meaning: 'The index was built with another version of Unicode than this program has.',
    fields: { index: "the index's version" },
    action: 'Build or refresh with this version of the program: a few names may not be found until then.',
  },

  // policy
  policy_in_use: {
    level: 'info',
    meaning: 'A worker judges by this policy from now on.',
    fields: { data: 'index generation and policy revision', records: 'records in the index' },
    action: '',
  },
  policy_refused: {
    level: 'error',
    meaning: 'The policy file was refused; the policy in force stays in use.',
    fields: FAILURE,
    action: 'Correct the file; "pagegate policy check" says the same.',
  },
  policy_kept: {
    level: 'warn',
    meaning: 'A restarted worker judges by the policy of the other workers, since the file is refused.',
    fields: { reason: 'why the file is refused' },
    action: 'As for policy_refused.',
  },
  policy_warning: {
    level: 'warn',
    meaning: 'An entry of the policy has no effect, or not the one that it seems to have.',
    fields: { warning: 'which and why' },
    action: 'Correct the entry.',
  },

  // certificate
  certificate_in_use: { level: 'info', meaning: 'New connections get the new certificate.', fields: {}, action: '' },
  certificate_refused: {
    level: 'error',
    meaning: 'The certificate or its key was refused; the ones before stay in use.',
    fields: FAILURE,
    action: 'Correct the files.',
  },
  certificate_kept: {
    level: 'warn',
    meaning: 'A restarted worker uses the certificate of the other workers, since the files are refused.',
    fields: { reason: 'why the files are refused' },
    action: 'As for certificate_refused.',
  },

  // workers
  worker_died: {
    level: 'error',
    meaning: 'A worker process ended; another one takes its place, unless the server is stopping.',
    fields: { ...WORKER, how: 'its exit code or signal' },
    action: 'Report it, unless somebody killed it or memory ran out.',
  },
  worker_hung: {
    level: 'error',
    meaning: 'A worker did not answer and was killed; another one takes its place.',
    fields: { ...WORKER, quiet_seconds: 'how long it did not answer' },
    action: 'Look at the disk and at the load of the host.',
  },
  worker_killed: {
    level: 'warn',
    meaning: 'A worker did not end in time when the server stopped, and was killed.',
    fields: { ...WORKER, reason: 'what it did not do' },
    action: 'Raise server.drain_seconds if requests need longer.',
  },
  worker_replaced: {
    level: 'info',
    meaning: 'The replacement of a worker that ended is listening.',
    fields: WORKER,
    action: '',
  },
  worker_start_failed: {
    level: 'error',
    meaning: 'A worker could not start; it is tried again.',
    fields: { ...WORKER, ...FAILURE },
    action: 'Follow the message.',
  },
  worker_crashed: {
    level: 'error',
    meaning: 'A worker met a failure that nobody caught, and ended; another one takes its place.',
    fields: { ...WORKER, ...FAILURE, name: 'the kind of failure' },
    action: 'Report it with this line: it is a defect.',
  },

  // the console beside the server
  console_listening: {
    level: 'info',
    meaning: 'The console answers.',
    fields: { address: 'where', pid: 'its process id' },
    action: '',
  },
  console_died: {
    level: 'error',
    meaning: 'The process of the console ended and is started again; no lookup notices.',
    fields: { pid: 'its process id', how: 'how it ended' },
    action: 'See console_failed for the reason; report it when there is none.',
  },
  console_hung: {
    level: 'error',
    meaning: 'The process of the console did not answer, was killed and is started again; no lookup notices.',
    fields: { pid: 'its process id', quiet_seconds: 'how long it did not answer' },
    action: 'Look at the load and at the disk of the host; report it when neither explains it.',
  },
  console_failed: {
    level: 'error',
    meaning: 'The console cannot be served; it is tried again.',
    fields: FAILURE,
    action: 'Free the port, or give the console folder of the state directory to the user of the server.',
  },
  console_request_failed: {
    level: 'error',
    meaning: 'A page of the console met a failure that nobody expected.',
    fields: { ...FAILURE, name: 'the kind of failure' },
    action: 'Report it with this line: it is a defect.',
  },
  console_samples_failed: {
    level: 'warn',
    meaning: 'The console cannot save what the server counted in the last minutes; it is tried again.',
    fields: FAILURE,
    action: 'Free the disk, or give the console folder of the state directory to the user of the server.',
  },
  primary_hung: {
    level: 'warn',
    meaning:
      'The console got no answer from the primary process, and says so once until it gets one. The workers answer lookups meanwhile.',
    fields: FAILURE,
    action: 'Look at the load and at the disk of the host; where it goes on, restart the server.',
  },
  console_certificate_refused: {
    level: 'error',
    meaning: 'The new certificate of the console cannot be used; the old one stays in use.',
    fields: FAILURE,
    action: 'Correct the certificate or its key; the files are read again when they change.',
  },
  console_crashed: {
    level: 'error',
    meaning: 'The console met a failure that nobody caught, and ended; it is started again.',
    fields: { ...FAILURE, name: 'the kind of failure' },
    action: 'Report it with this line: it is a defect.',
  },

  // requests
  request_failed: {
    level: 'error',
    meaning: 'A request met a failure and was answered 503.',
    fields: { ...FAILURE, name: 'the kind of failure' },
    action: 'For record_corrupt run "pagegate verify"; for ledger_unavailable look at /readyz; report code internal.',
  },
  requests_refused: {
    level: 'warn',
    meaning:
      'Requests were answered 401, 403 or 429: the first of a kind at once, the others of a minute in one line. A kind is a code with its account and network.',
    fields: {
      code: 'the error code of the answers',
      account: 'name of the account, where the key is known',
      network: "the client's network, where log.client_networks is on",
      count: 'how many',
      seconds: 'in how many seconds; 0 for the first',
    },
    action:
      'Give the client its key (unknown_key, missing_key), activate the account (not_activated), take a larger plan (quota_exhausted), or put a gateway into burst.exempt (rate_limited).',
  },
  decision_log_failed: {
    level: 'error',
    meaning: 'The decision log cannot be written; lines are dropped until it can.',
    fields: FAILURE,
    action: 'Free the disk, or give the folder to the user of the server.',
  },
});

export type LogEvent = keyof typeof LOG_EVENTS;

export type LogValue = string | number | boolean | null | undefined;

/** The fields of an event. For a union of events, those of any one of them. */
export type LogFields<E extends LogEvent = LogEvent> = {
  readonly [F in keyof (typeof LOG_EVENTS)[E]['fields']]?: LogValue;
};
