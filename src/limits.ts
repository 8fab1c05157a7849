/**
 * The limits that a client, an operator or a vendor can reach: the value, its reason, and what happens beyond it. docs/limits.md is generated
 * from this file. Internal sizes, such as those of buffers and of the index format, are defined where they are used.
 */

export interface Limit {
  readonly value: number;
  readonly unit: 'bytes' | 'characters' | 'seconds' | 'milliseconds' | 'days' | '';
  /** What is limited. */
  readonly what: string;
  /** Why it has this value. */
  readonly reason: string;
  /** What happens beyond the limit. */
  readonly beyond: string;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const DAY_SECONDS = 86_400;

/** Checks the type of a group of limits without widening its names. */
const group = <K extends string>(limits: Record<K, Limit>): Readonly<Record<K, Limit>> => limits;

const REQUESTS = group({
  valueBytes: {
    value: 8_192,
    unit: 'bytes',
    what: 'The parameter `url` or `domain`, decoded',
    reason: 'Twice the longest URL that a page needs. Longer URLs, up to this limit, are judged as a deny.',
    beyond: '`input_too_long`',
  },
  domainBytes: {
    value: 253,
    unit: 'bytes',
    what: 'A domain',
    reason: 'The maximum length of a DNS name, without its trailing dot (RFC 1035).',
    beyond: '`input_too_long`; `domain_too_long` in a drop',
  },
  labelBytes: {
    value: 63,
    unit: 'bytes',
    what: 'A label of a domain',
    reason: 'The DNS stores the length in 6 bits (RFC 1035).',
    beyond: '`bad_input`; `domain_label_too_long` in a drop',
  },
  headersBytes: {
    value: 40_960,
    unit: 'bytes',
    what: 'Request line and headers together',
    reason: 'A value of maximum length with every byte percent-encoded, plus space for the headers.',
    beyond: 'status 431, no JSON',
  },
  forwardedCharacters: {
    value: 2_048,
    unit: 'characters',
    what: '`X-Forwarded-For`',
    reason: 'A chain of proxies is a handful of addresses.',
    beyond: 'the header is ignored',
  },
  burstWindowSeconds: {
    value: 60,
    unit: 'seconds',
    what: 'The window of `burst.limit`',
    reason: 'The API states its rate per minute.',
    beyond: '`rate_limited`',
  },
  burstTableBytes: {
    value: 512 * MIB,
    unit: 'bytes',
    what: 'Memory of the burst limit, regardless of the settings',
    reason: 'One table for all workers, reserved at the start.',
    beyond: 'fewer clients than `burst.max_clients` are counted separately',
  },
  loggedPathCharacters: {
    value: 1_024,
    unit: 'characters',
    what: 'A path in the decision log',
    reason: 'A log line describes a decision; it need not archive long URLs.',
    beyond: 'truncated, with `…`',
  },
});

const ACCOUNTS = group({
  accounts: {
    value: 65_535,
    unit: '',
    what: 'Accounts in a ledger',
    reason: 'Each has one slot of 64 bytes in the shared counters, which take 4 MiB.',
    beyond: '`too_many_accounts`',
  },
  planLookups: {
    value: 1_000_000_000_000,
    unit: '',
    what: 'Lookups of a plan in a cycle',
    reason: 'A counter can hold it exactly, and no plan comes close to it.',
    beyond: '`bad_plan_limit`',
  },
  cycleSeconds: {
    value: 30 * DAY_SECONDS,
    unit: 'seconds',
    what: 'A cycle',
    reason: 'Plans are sold for 30 days at a time.',
    beyond: 'the next cycle',
  },
  overlapSeconds: {
    value: 30 * DAY_SECONDS,
    unit: 'seconds',
    what: 'Validity of a rotated API key beside its successor',
    reason: 'A key that is valid for longer than a cycle was not rotated.',
    beyond: '`bad_overlap`',
  },
  validKeys: {
    value: 100,
    unit: '',
    what: 'Valid API keys of an account',
    reason: 'About three times as many as a daily rotation with 30 days of overlap needs.',
    beyond: '`too_many_keys`',
  },
  usageDays: {
    value: 400,
    unit: 'days',
    what: 'Daily usage that is kept',
    reason: 'A year, plus a month to compare it with.',
    beyond: 'removed',
  },
  correctionNote: {
    value: 200,
    unit: 'characters',
    what: 'The reason of a correction',
    reason: 'It is one line of the audit table.',
    beyond: '`bad_correction`',
  },
  auditLines: {
    value: 100_000,
    unit: '',
    what: 'Lines that `account audit` prints',
    reason: 'They are held in memory. Request fewer lines, or those of one account.',
    beyond: '`usage`',
  },
  reservationWaitMs: {
    value: 5_000,
    unit: 'milliseconds',
    what: 'Wait of a request for the next reservation',
    reason: 'Longer than a healthy disk needs. An agent does not wait longer for a page.',
    beyond: '`ledger_unavailable`',
  },
  blockLookups: {
    value: 64,
    unit: '',
    what: 'The smallest block of reserved lookups',
    reason: 'The next requests of an idle account need not wait.',
    beyond: 'blocks grow with the request rate',
  },
  clockLeapSeconds: {
    value: 45 * DAY_SECONDS,
    unit: 'seconds',
    what: 'How far the clock may be ahead of the latest time in the ledger',
    reason:
      'A host that was off for a month continues by itself. A cycle that a wrong clock opened could not be closed.',
    beyond: '`ledger_clock`',
  },
});

const DROPS = group({
  manifestBytes: {
    value: 8 * MIB,
    unit: 'bytes',
    what: 'The manifest of a drop',
    reason: 'Ten thousand parts take about 2 MB.',
    beyond: '`drop_too_large`',
  },
  signatures: {
    value: 8,
    unit: '',
    what: 'Signatures of a manifest',
    reason: 'More than one lets a vendor change keys.',
    beyond: '`drop_signature_invalid`',
  },
  signatureFileBytes: {
    value: 4 * KIB,
    unit: 'bytes',
    what: '`manifest.json.sig`',
    reason: 'Eight signatures take 700 bytes.',
    beyond: '`drop_too_large`',
  },
  lineBytes: {
    value: 65_536,
    unit: 'bytes',
    what: 'A line of a part',
    reason: 'A line with all page types and URLs of maximum length fits.',
    beyond: 'reject `line_too_long`',
  },
  pageUrlBytes: {
    value: 2_048,
    unit: 'bytes',
    what: 'The URL of a verified page',
    reason: 'Browsers and sitemaps agree on it, and the index stores the length in few bits.',
    beyond: 'reject `page_url_too_long`',
  },
  unpackedRecordBytes: {
    value: 16_384,
    unit: 'bytes',
    what: 'Unpacked size of a compressed part, for each of its records',
    reason: 'On average, a quarter of the longest line.',
    beyond: '`drop_too_large`',
  },
  unpackedFloorBytes: {
    value: 65_536,
    unit: 'bytes',
    what: 'Unpacked size that every compressed part may have',
    reason: 'One line of maximum length fits into the smallest part.',
    beyond: '`drop_too_large`',
  },
  rejectsOfPart: {
    value: 10_000,
    unit: '',
    what: 'Rejects of one part in the side file',
    reason: 'A broken part does not hide the rejects of the others.',
    beyond: 'counted only',
  },
  rejects: {
    value: 100_000,
    unit: '',
    what: 'Rejects of a drop in the side file',
    reason: 'Enough to see every kind of reject; about 20 MB.',
    beyond: 'counted only',
  },
  generationNumber: {
    value: 999_999_999,
    unit: '',
    what: 'The number of a generation',
    reason: 'Every type that stores the number can hold nine digits exactly.',
    beyond: '`store_damaged`',
  },
  withdrawnDrops: {
    value: 64,
    unit: '',
    what: 'Withdrawn drops that are remembered',
    reason: 'Older ones are refused by their revision.',
    beyond: 'the oldest is forgotten',
  },
});

const FILES = group({
  configurationBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A configuration file',
    reason: 'A configuration is a page of JSON. A larger file is something else.',
    beyond: '`config_unreadable`',
  },
  policyBytes: {
    value: 16 * MIB,
    unit: 'bytes',
    what: 'A policy file, or a file of cases',
    reason: 'The maximum number of entries in the schema fits.',
    beyond: '`policy_missing`',
  },
  registerBytes: {
    value: 32 * MIB,
    unit: 'bytes',
    what: 'A file of the agent register',
    reason: 'A register of ten thousand agents is about 10 MB.',
    beyond: '`register_unreadable`',
  },
  registerFindings: {
    value: 1_000,
    unit: '',
    what: 'Findings that `register validate` prints',
    reason: 'Enough to see what is wrong.',
    beyond: 'counted only',
  },
  licenseBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A license file',
    reason: 'Ten thousand manifests take 900 KB.',
    beyond: '`bad_license`',
  },
  licenseManifests: {
    value: 10_000,
    unit: '',
    what: 'Manifests that a license names',
    reason: 'One drop a day for 27 years.',
    beyond: '`bad_license`',
  },
  plansBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A plan catalog',
    reason: 'A hundred plans take a few thousand bytes.',
    beyond: '`bad_plan_catalogue`',
  },
  publicKeyBytes: {
    value: 16 * KIB,
    unit: 'bytes',
    what: 'A file with a key in PEM',
    reason: 'A key has a few hundred bytes; comments may precede it.',
    beyond: '`trusted_key_invalid`, `bad_license_key`',
  },
  certificateBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A certificate chain or its key',
    reason: 'A chain of a few certificates has about ten thousand bytes.',
    beyond: '`tls_unusable`',
  },
  jsonDepth: {
    value: 32,
    unit: '',
    what: 'Nesting of a JSON document',
    reason: 'No document here needs ten levels.',
    beyond: 'the error code of the file',
  },
  jsonValues: {
    value: 1_000_000,
    unit: '',
    what: 'Values of a file of the agent register',
    reason: 'The line of each value is kept. Ten thousand agents have about 400,000.',
    beyond: 'a finding: the file is not valid',
  },
});

const PROCESSES = group({
  workers: {
    value: 256,
    unit: '',
    what: 'Threads of a command, and workers of a server',
    reason: 'More than any expected host has cores. Each takes memory.',
    beyond: '`usage`, `config_invalid`',
  },
  heartbeatMs: {
    value: 1_000,
    unit: 'milliseconds',
    what: 'Time between two heartbeats of a worker or the ledger writer',
    reason: 'Short compared with the timeout, long compared with a request.',
    beyond: '',
  },
  hangTimeoutMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'Time without a heartbeat',
    reason: 'Longer than a healthy disk stalls. It doubles with each such end in a row, up to four times.',
    beyond: 'the process is killed and replaced',
  },
  reloadMs: {
    value: 120_000,
    unit: 'milliseconds',
    what: 'Time for a reload',
    reason: 'A reload maps and checks a file, and may read all of it.',
    beyond: '`server_refused`; the worker is named',
  },
  adminConnections: {
    value: 64,
    unit: '',
    what: 'Connections to the admin listener',
    reason: 'A few scrapers and probes connect.',
    beyond: 'closed at once',
  },
  adminRequestMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'Time for a request to the admin listener',
    reason: 'Probes give up sooner.',
    beyond: 'the connection is closed',
  },
  socketConnections: {
    value: 16,
    unit: '',
    what: 'Connections to the Unix socket',
    reason: 'Only commands of people and timers connect.',
    beyond: 'closed at once; the command ends with `server_busy`',
  },
});

/** The console: requests, sign-ins, sessions, and how much a page shows. */
const CONSOLE = group({
  consoleFormBytes: {
    value: 16 * KIB,
    unit: 'bytes',
    what: 'A form sent to the console',
    reason: 'The longest has a dozen short fields.',
    beyond: 'status 413',
  },
  consoleHeadersBytes: {
    value: 16 * KIB,
    unit: 'bytes',
    what: 'Request line and headers together, at the console',
    reason: 'The longest URL that a page links to, plus the cookies of a proxy.',
    beyond: 'status 431',
  },
  consoleUrlCharacters: {
    value: 12 * KIB,
    unit: 'characters',
    what: 'A URL of the console',
    reason: 'It may contain a URL to try: one as long as that of a page, with every byte percent-encoded.',
    beyond: 'status 414',
  },
  consoleFields: {
    value: 64,
    unit: '',
    what: 'Fields of a form or a query',
    reason: 'The longest form has ten.',
    beyond: 'status 400',
  },
  consoleFilterCharacters: {
    value: 256,
    unit: 'characters',
    what: 'A field of a filter of decisions',
    reason: 'A domain has at most 253 characters.',
    beyond: 'status 400',
  },
  consoleHeadersMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'Time for the headers of a request to the console',
    reason: 'A browser sends them at once. A slower client only occupies a connection.',
    beyond: 'status 408, and the connection is closed',
  },
  consoleRequestMs: {
    value: 20_000,
    unit: 'milliseconds',
    what: 'Time for a whole request to the console',
    reason: 'Enough for the largest form over a slow line.',
    beyond: 'status 408, and the connection is closed',
  },
  consoleIdleMs: {
    value: 60_000,
    unit: 'milliseconds',
    what: 'Time without a byte on a connection to the console',
    reason: 'A page that refreshes itself sends requests more often.',
    beyond: 'the connection is closed',
  },
  consoleConnections: {
    value: 1_024,
    unit: '',
    what: 'Connections to the console',
    reason: 'A few hundred open pages, each with a few connections.',
    beyond: 'the connection that has waited longest for a whole request is closed',
  },
  consoleRequests: {
    value: 256,
    unit: '',
    what: 'Requests that the console handles at a time; each counts once it has arrived completely',
    reason: 'Hundreds of open pages may refresh themselves at the same moment.',
    beyond: 'status 503',
  },
  consoleSessionSeconds: {
    value: 12 * 3_600,
    unit: 'seconds',
    what: 'A session of the console',
    reason: 'A working day.',
    beyond: 'signed out',
  },
  consoleIdleSeconds: {
    value: 3_600,
    unit: 'seconds',
    what: 'An unused session of the console',
    reason: 'Longer than a meeting, shorter than a night. A page that refreshes itself does not count as use.',
    beyond: 'signed out',
  },
  consoleSessionsOfName: {
    value: 20,
    unit: '',
    what: 'Sessions of one user, or of one account',
    reason: 'The devices of a person, several times over.',
    beyond: 'the least recently used one ends',
  },
  consoleSessions: {
    value: 10_000,
    unit: '',
    what: 'Sessions of the console',
    reason: 'Each is a row of some hundred bytes.',
    beyond: 'the least recently used one ends',
  },
  consoleSessionsShown: {
    value: 200,
    unit: '',
    what: 'Open sessions on the page of users',
    reason: 'The ones used last. The page of a user lists all sessions of that user.',
    beyond: 'not shown there',
  },
  consoleLinkSeconds: {
    value: 3_600,
    unit: 'seconds',
    what: 'A one-time link to sign in',
    reason: 'Long enough to reach the recipient.',
    beyond: 'the link no longer works',
  },
  consoleUsers: {
    value: 1_000,
    unit: '',
    what: 'Users of the console',
    reason: 'Enough for the operators and viewers of one pagegate.',
    beyond: '`bad_console_user`',
  },
  consoleLinks: {
    value: 1_000,
    unit: '',
    what: 'Unused one-time links',
    reason: 'One for each user.',
    beyond: 'the oldest is removed',
  },
  consolePasswordCharacters: {
    value: 256,
    unit: 'characters',
    what: 'A password',
    reason: 'Longer than a sentence. Every byte of it is hashed.',
    beyond: '`bad_password`',
  },
  consoleSignInSeconds: {
    value: 600,
    unit: 'seconds',
    what: 'The window in which failed sign-ins count',
    reason: 'Long enough to make guessing hopeless, short enough for a user who mistyped.',
    beyond: 'they are forgotten',
  },
  consoleAddressFailures: {
    value: 20,
    unit: '',
    what: 'Failed sign-ins from one address (IPv6: one /64) in the window',
    reason: 'Users in an office behind one address mistype now and then.',
    beyond: 'status 429 until the window ends',
  },
  consoleNameFailures: {
    value: 10,
    unit: '',
    what: 'Failed sign-ins with one name in the window',
    reason: 'A user who mistypes ten times needs a link.',
    beyond: 'status 429 until the window ends',
  },
  consoleOwnActions: {
    value: 20,
    unit: '',
    what: 'Keys that an account shows, rotates or revokes in the console within ten minutes',
    reason: 'Each is a line of the audit, which is kept forever.',
    beyond: 'all users of the account must wait',
  },
  consoleFailureEntries: {
    value: 10_000,
    unit: '',
    what: 'Addresses, and likewise names, whose failures are counted',
    reason: 'All of them together take about 1 MB.',
    beyond: 'the oldest is forgotten',
  },
  consoleHashes: {
    value: 2,
    unit: '',
    what: 'Passwords that are hashed at a time',
    reason: 'Each takes 32 MiB and a thread.',
    beyond: 'up to 16 more wait; beyond these, `console_busy`',
  },
  consoleEvents: {
    value: 20_000,
    unit: '',
    what: 'Sign-ins and changes of users in the audit',
    reason: 'Several years of a team; about 3 MB.',
    beyond: 'the oldest is removed',
  },
  consoleOutsideEvents: {
    value: 5_000,
    unit: '',
    what: 'Of these, failed sign-ins and actions of accounts',
    reason: 'Anyone can cause them. Even a large number must not displace the others.',
    beyond: 'the oldest of them is removed',
  },
  consoleDecisions: {
    value: 100,
    unit: '',
    what: 'Decisions on a page',
    reason: 'A table that a browser shows at once.',
    beyond: 'a link to older ones',
  },
  consoleSearchMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'Time of the search for a page of decisions',
    reason: 'Enough for about ten million lines. The user can narrow the search or continue it.',
    beyond: 'a link that continues the search',
  },
  consoleSearches: {
    value: 32,
    unit: '',
    what: 'Searches of the decision log at a time',
    reason: 'Each takes several megabytes of memory.',
    beyond: '`console_busy`',
  },
  consoleProposals: {
    value: 8,
    unit: '',
    what: 'Policy entries that the console is proposing, or that wait for it',
    reason: 'Each blocks the console for some tenths of a second. Pages are answered in between.',
    beyond: '`console_busy`',
  },
  consoleLogLineBytes: {
    value: 256 * KIB,
    unit: 'bytes',
    what: 'A line of the decision log, as the console reads it',
    reason: 'The server writes no line of this length.',
    beyond: 'skipped',
  },
  consoleAccounts: {
    value: 100,
    unit: '',
    what: 'Accounts, and users, on a page',
    reason: 'A table that a browser shows at once.',
    beyond: 'a link to the next page',
  },
  consoleAudit: {
    value: 200,
    unit: '',
    what: 'Lines of the audit on a page',
    reason: 'The changes of several weeks.',
    beyond: 'a link to older ones',
  },
  consoleAuditExport: {
    value: 20_000,
    unit: '',
    what: 'Lines of the audit in an exported file',
    reason: 'They are held in memory; `pagegate account audit` prints more.',
    beyond: '`pagegate account audit`',
  },
  consoleMinutesSeconds: {
    value: DAY_SECONDS,
    unit: 'seconds',
    what: 'Time series with a row for each minute',
    reason: 'A day, as the overview shows it; 1,440 rows.',
    beyond: 'removed',
  },
  consoleHoursSeconds: {
    value: 92 * DAY_SECONDS,
    unit: 'seconds',
    what: 'Time series with a row for each hour',
    reason: 'A quarter; 2,208 rows.',
    beyond: 'removed',
  },
  consoleWarnings: {
    value: 200,
    unit: '',
    what: 'Warnings of the server on the page Health',
    reason: 'They show what led to the current state. The log has all warnings.',
    beyond: 'the oldest is removed',
  },
  consoleJobs: {
    value: 10,
    unit: '',
    what: 'Work on the page Generations',
    reason: 'The work that was started last. The audit has every change.',
    beyond: 'the oldest is removed',
  },
  consoleHeapMib: {
    value: 256,
    unit: '',
    what: 'Memory of the console for objects, in MiB',
    reason: 'Everything that it shows is bounded, so more memory is a sign of a defect.',
    beyond: 'it is restarted',
  },
});

/** All limits by name. */
export const LIMITS = { ...REQUESTS, ...ACCOUNTS, ...DROPS, ...FILES, ...PROCESSES, ...CONSOLE } as const;

/** All limits by topic, in the order of docs/limits.md. */
export const LIMIT_TOPICS: Readonly<Record<string, Readonly<Record<string, Limit>>>> = {
  Requests: REQUESTS,
  'Accounts and quotas': ACCOUNTS,
  'Drops and generations': DROPS,
  'Files that people write': FILES,
  Processes: PROCESSES,
  'The console': CONSOLE,
};
