/**
 * One home for the limits that a caller, an operator or a vendor can meet: how much, why so much, and what happens beyond. docs/limits.md is
 * made from it. Sizes of buffers and of the index format that nobody meets stand where they are used.
 */

export interface Limit {
  readonly value: number;
  readonly unit: 'bytes' | 'characters' | 'seconds' | 'milliseconds' | 'days' | '';
  /** What is limited. */
  readonly what: string;
  /** Why the value is what it is. */
  readonly reason: string;
  /** What happens beyond it. */
  readonly beyond: string;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const DAY_SECONDS = 86_400;

/** Checks a group of limits without widening its names. */
const group = <K extends string>(limits: Record<K, Limit>): Readonly<Record<K, Limit>> => limits;

const REQUESTS = group({
  valueBytes: {
    value: 8_192,
    unit: 'bytes',
    what: 'The parameter `url` or `domain`, decoded',
    reason: 'Twice the longest URL that a page needs; longer ones are judged too, as a deny.',
    beyond: '`input_too_long`',
  },
  domainBytes: {
    value: 253,
    unit: 'bytes',
    what: 'A domain',
    reason: 'The longest name of the DNS, without its last dot (RFC 1035).',
    beyond: '`input_too_long`; `domain_too_long` in a drop',
  },
  labelBytes: {
    value: 63,
    unit: 'bytes',
    what: 'A label of a domain',
    reason: 'The DNS has 6 bits for it (RFC 1035).',
    beyond: '`bad_input`; `domain_label_too_long` in a drop',
  },
  headersBytes: {
    value: 40_960,
    unit: 'bytes',
    what: 'Request line and headers together',
    reason: 'A value of the longest size, every byte percent-encoded, and space for the headers.',
    beyond: 'status 431, no JSON',
  },
  forwardedCharacters: {
    value: 2_048,
    unit: 'characters',
    what: '`X-Forwarded-For`',
    reason: 'A chain of proxies is a handful of addresses.',
    beyond: 'the header does not count',
  },
  burstWindowSeconds: {
    value: 60,
    unit: 'seconds',
    what: 'The window of `burst.limit`',
    reason: 'The rate that the interface states is per minute.',
    beyond: '`rate_limited`',
  },
  burstTableBytes: {
    value: 512 * MIB,
    unit: 'bytes',
    what: 'Memory of the burst limit, whatever the settings',
    reason: 'One table for all workers, reserved at the start.',
    beyond: 'fewer clients are counted apart than `burst.max_clients` asks for',
  },
  loggedPathCharacters: {
    value: 1_024,
    unit: 'characters',
    what: 'A path in the decision log',
    reason: 'A line is a record, not an archive.',
    beyond: 'cut, with `…`',
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
    reason: 'A counter holds it exactly, and no plan is near it.',
    beyond: '`bad_plan_limit`',
  },
  cycleSeconds: {
    value: 30 * DAY_SECONDS,
    unit: 'seconds',
    what: 'A cycle',
    reason: 'The plans are sold by 30 days.',
    beyond: 'the next cycle',
  },
  overlapSeconds: {
    value: 30 * DAY_SECONDS,
    unit: 'seconds',
    what: 'A rotated API key beside its successor',
    reason: 'A key that is valid for longer than a cycle was not rotated.',
    beyond: '`bad_overlap`',
  },
  validKeys: {
    value: 100,
    unit: '',
    what: 'API keys of an account that are valid at a time',
    reason: 'One a day, each valid for as long as it may be beside its successor, three times over.',
    beyond: '`too_many_keys`',
  },
  usageDays: {
    value: 400,
    unit: 'days',
    what: 'Usage by day that is kept',
    reason: 'A year, and a month to compare it with.',
    beyond: 'removed',
  },
  correctionNote: {
    value: 200,
    unit: 'characters',
    what: 'The reason of a correction',
    reason: 'It is a line of the audit table.',
    beyond: '`bad_correction`',
  },
  auditLines: {
    value: 100_000,
    unit: '',
    what: 'Lines that `account audit` prints',
    reason: 'They are held in memory; ask for fewer, or for one account.',
    beyond: '`usage`',
  },
  reservationWaitMs: {
    value: 5_000,
    unit: 'milliseconds',
    what: 'The wait of a burst for its next reservation',
    reason: 'Longer than a healthy disk needs; an agent does not wait longer for a page.',
    beyond: '`ledger_unavailable`',
  },
  blockLookups: {
    value: 64,
    unit: '',
    what: 'The smallest block of reserved lookups',
    reason: "An idle account's next requests wait for nothing.",
    beyond: 'a block grows with the rate',
  },
  clockLeapSeconds: {
    value: 45 * DAY_SECONDS,
    unit: 'seconds',
    what: 'The clock ahead of the latest second that the ledger has seen',
    reason: 'A host that was off for a month goes on by itself; a cycle that a wrong clock opened could not be closed.',
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
    reason: 'All page types with the longest URLs fit.',
    beyond: 'reject `line_too_long`',
  },
  pageUrlBytes: {
    value: 2_048,
    unit: 'bytes',
    what: 'The URL of a verified page',
    reason: 'What browsers and sitemaps agree on; the index keeps a size in few bits.',
    beyond: 'reject `page_url_too_long`',
  },
  unpackedRecordBytes: {
    value: 16_384,
    unit: 'bytes',
    what: 'What a packed part may unpack to, for each of its records',
    reason: 'A quarter of the longest line, on average.',
    beyond: '`drop_too_large`',
  },
  unpackedFloorBytes: {
    value: 65_536,
    unit: 'bytes',
    what: 'What any packed part may unpack to',
    reason: 'One line of the longest size fits into the smallest part.',
    beyond: '`drop_too_large`',
  },
  rejectsOfPart: {
    value: 10_000,
    unit: '',
    what: 'Rejects of one part in the side file',
    reason: 'One broken part does not hide the others.',
    beyond: 'counted only',
  },
  rejects: {
    value: 100_000,
    unit: '',
    what: 'Rejects of a drop in the side file',
    reason: 'Enough to see every kind; about 20 MB.',
    beyond: 'counted only',
  },
  generationNumber: {
    value: 999_999_999,
    unit: '',
    what: 'The number of a generation',
    reason: 'Nine digits: whatever holds it holds it exactly.',
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
    reason: 'It is a page of JSON; what is larger is something else.',
    beyond: '`config_unreadable`',
  },
  policyBytes: {
    value: 16 * MIB,
    unit: 'bytes',
    what: 'A policy file, or a file of cases',
    reason: 'As many entries as its schema takes fit.',
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
    reason: 'A drop each day for 27 years.',
    beyond: '`bad_license`',
  },
  plansBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A plan catalog',
    reason: 'A hundred plans take some thousand bytes.',
    beyond: '`bad_plan_catalogue`',
  },
  publicKeyBytes: {
    value: 16 * KIB,
    unit: 'bytes',
    what: 'A file with a key in PEM',
    reason: 'A key is a few hundred bytes; comments may stand before it.',
    beyond: '`trusted_key_invalid`, `bad_license_key`',
  },
  certificateBytes: {
    value: MIB,
    unit: 'bytes',
    what: 'A certificate chain or its key',
    reason: 'A chain of a few certificates has some ten thousand bytes.',
    beyond: '`tls_unusable`',
  },
  jsonDepth: {
    value: 32,
    unit: '',
    what: 'Nesting of a JSON document',
    reason: 'No document here needs ten levels.',
    beyond: "the file's own code",
  },
  jsonValues: {
    value: 1_000_000,
    unit: '',
    what: 'Values of a file of the agent register',
    reason: 'The place of each is kept; ten thousand agents have about 400,000.',
    beyond: 'a finding: the file is not valid',
  },
});

const PROCESSES = group({
  workers: {
    value: 256,
    unit: '',
    what: 'Threads of a command, and workers of a server',
    reason: 'More than any host here has cores; each takes its memory.',
    beyond: '`usage`, `config_invalid`',
  },
  heartbeatMs: {
    value: 1_000,
    unit: 'milliseconds',
    what: 'Between two heartbeats of a worker or the ledger writer',
    reason: 'Short beside the timeout, long beside a request.',
    beyond: '',
  },
  hangTimeoutMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'Without a heartbeat',
    reason: 'Longer than a stall of a healthy disk. It doubles with each end in a row, four times.',
    beyond: 'the process is killed and replaced',
  },
  reloadMs: {
    value: 120_000,
    unit: 'milliseconds',
    what: 'A reload',
    reason: 'It maps and checks a file, and may read all of it.',
    beyond: '`server_refused`; the worker is named',
  },
  adminConnections: {
    value: 64,
    unit: '',
    what: 'Connections to the admin listener',
    reason: 'A few scrapers and probes.',
    beyond: 'closed at once',
  },
  adminRequestMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'A request to the admin listener',
    reason: 'Probes give up sooner.',
    beyond: 'closed',
  },
  socketConnections: {
    value: 16,
    unit: '',
    what: 'Connections to the Unix socket',
    reason: 'Commands of people and timers.',
    beyond: 'closed at once; the command ends with `server_busy`',
  },
});

/** The console: what its listener takes, whom it lets in, and how much a page shows. */
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
    reason: 'The longest address that a page makes, and the cookies of a proxy.',
    beyond: 'status 431',
  },
  consoleUrlCharacters: {
    value: 12 * KIB,
    unit: 'characters',
    what: 'An address of the console',
    reason: 'A URL to try, every byte percent-encoded, at the length that pages have.',
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
    what: 'The headers of a request to the console',
    reason: 'A browser sends them at once; what is slower holds a connection.',
    beyond: 'status 408, and the connection is closed',
  },
  consoleRequestMs: {
    value: 20_000,
    unit: 'milliseconds',
    what: 'A whole request to the console',
    reason: 'A form of the largest size over a slow line.',
    beyond: 'status 408, and the connection is closed',
  },
  consoleIdleMs: {
    value: 60_000,
    unit: 'milliseconds',
    what: 'A connection to the console without a byte',
    reason: 'A page that renews itself asks more often.',
    beyond: 'closed',
  },
  consoleConnections: {
    value: 1_024,
    unit: '',
    what: 'Connections to the console',
    reason: 'A few hundred open pages, each with a few connections.',
    beyond: 'the one that has waited longest for a whole request is closed',
  },
  consoleRequests: {
    value: 256,
    unit: '',
    what: 'Requests that the console works on at a time; one counts once all of it is there',
    reason: 'Hundreds of open pages that renew themselves at the same moment.',
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
    what: 'A session of the console that nobody uses',
    reason: 'Longer than a meeting, shorter than a night. A page that renews itself is no use.',
    beyond: 'signed out',
  },
  consoleSessionsOfName: {
    value: 20,
    unit: '',
    what: 'Sessions of one user, or of one account',
    reason: 'The devices of a person, several times over.',
    beyond: 'the one that was used least lately ends',
  },
  consoleSessions: {
    value: 10_000,
    unit: '',
    what: 'Sessions of the console',
    reason: 'Each is a row of some hundred bytes.',
    beyond: 'the one that was used least lately ends',
  },
  consoleSessionsShown: {
    value: 200,
    unit: '',
    what: 'Open sessions on the page of users',
    reason: 'Those that were used last; the page of a user has all of the user’s own.',
    beyond: 'not shown there',
  },
  consoleLinkSeconds: {
    value: 3_600,
    unit: 'seconds',
    what: 'A one-time link to sign in',
    reason: 'Long enough to reach who it is for.',
    beyond: 'it signs nobody in',
  },
  consoleUsers: {
    value: 1_000,
    unit: '',
    what: 'Users of the console',
    reason: 'Operators and viewers of one pagegate.',
    beyond: '`bad_console_user`',
  },
  consoleLinks: {
    value: 1_000,
    unit: '',
    what: 'One-time links that were not used',
    reason: 'As many as users.',
    beyond: 'the oldest goes',
  },
  consolePasswordCharacters: {
    value: 256,
    unit: 'characters',
    what: 'A password',
    reason: 'Longer than a sentence; every byte of it is hashed.',
    beyond: '`bad_password`',
  },
  consoleSignInSeconds: {
    value: 600,
    unit: 'seconds',
    what: 'The window in which failures to sign in count',
    reason: 'Long enough to make guessing hopeless, short enough for somebody who mistyped.',
    beyond: 'they are forgotten',
  },
  consoleAddressFailures: {
    value: 20,
    unit: '',
    what: 'Failures to sign in from one address (IPv6: one /64) in the window',
    reason: 'An office behind one address mistypes now and then.',
    beyond: 'status 429 until the window ends',
  },
  consoleNameFailures: {
    value: 10,
    unit: '',
    what: 'Failures to sign in as one name in the window',
    reason: 'Who mistypes ten times needs a link.',
    beyond: 'status 429 until the window ends',
  },
  consoleOwnActions: {
    value: 20,
    unit: '',
    what: 'Keys that an account shows, rotates or revokes in the console within ten minutes',
    reason: 'Each is a line of the audit, which is kept for good.',
    beyond: 'everybody who is signed in as the account waits',
  },
  consoleFailureEntries: {
    value: 10_000,
    unit: '',
    what: 'Addresses, and names, whose failures are counted',
    reason: 'All of them together take about 1 MB.',
    beyond: 'the oldest is forgotten',
  },
  consoleHashes: {
    value: 2,
    unit: '',
    what: 'Passwords that are hashed at a time',
    reason: 'Each takes 32 MiB and a thread.',
    beyond: 'the next waits; of more than 16, `console_busy`',
  },
  consoleEvents: {
    value: 20_000,
    unit: '',
    what: 'Sign-ins and changes of users in the audit',
    reason: 'Some years of a team; about 3 MB.',
    beyond: 'the oldest goes',
  },
  consoleOutsideEvents: {
    value: 5_000,
    unit: '',
    what: 'Of these, failures to sign in and what accounts do',
    reason: 'Anybody may cause them: however many there are, the others stay.',
    beyond: 'the oldest of them goes',
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
    what: 'The search for a page of decisions',
    reason: 'About ten million lines; the reader may narrow it down, or go on.',
    beyond: 'a link that goes on',
  },
  consoleSearches: {
    value: 32,
    unit: '',
    what: 'Searches of the decision log at a time',
    reason: 'Each holds some megabytes.',
    beyond: '`console_busy`',
  },
  consoleProposals: {
    value: 8,
    unit: '',
    what: 'Entries for a policy that the console proposes or that wait for it',
    reason: 'Each holds the console up for some tenths of a second; pages are answered between two.',
    beyond: '`console_busy`',
  },
  consoleLogLineBytes: {
    value: 256 * KIB,
    unit: 'bytes',
    what: 'A line of the decision log, as the console reads it',
    reason: 'Longer than the server writes one.',
    beyond: 'passed over',
  },
  consoleAccounts: {
    value: 100,
    unit: '',
    what: 'Accounts, and users, on a page',
    reason: 'A table that a browser shows at once.',
    beyond: 'a link to the next',
  },
  consoleAudit: {
    value: 200,
    unit: '',
    what: 'Lines of the audit on a page',
    reason: 'The changes of some weeks.',
    beyond: 'a link to older ones',
  },
  consoleAuditExport: {
    value: 20_000,
    unit: '',
    what: 'Lines of the audit in a file',
    reason: 'They are held in memory; `pagegate account audit` prints more.',
    beyond: '`pagegate account audit`',
  },
  consoleMinutesSeconds: {
    value: DAY_SECONDS,
    unit: 'seconds',
    what: 'Time series by the minute',
    reason: 'A day, as the overview shows it; 1,440 rows.',
    beyond: 'removed',
  },
  consoleHoursSeconds: {
    value: 92 * DAY_SECONDS,
    unit: 'seconds',
    what: 'Time series by the hour',
    reason: 'A quarter; 2,208 rows.',
    beyond: 'removed',
  },
  consoleWarnings: {
    value: 200,
    unit: '',
    what: 'Warnings of the server that Health lists',
    reason: 'What led to the present state; the log has all.',
    beyond: 'the oldest goes',
  },
  consoleJobs: {
    value: 10,
    unit: '',
    what: 'Work that Generations lists',
    reason: 'What was started lately; the audit has every change.',
    beyond: 'the oldest goes',
  },
  consoleHeapMib: {
    value: 256,
    unit: '',
    what: 'Memory of the console for objects, in MiB',
    reason: 'What it shows is bounded; more is a defect.',
    beyond: 'it is started again',
  },
});

/** Every limit by its name. */
export const LIMITS = { ...REQUESTS, ...ACCOUNTS, ...DROPS, ...FILES, ...PROCESSES, ...CONSOLE } as const;

/** Every limit under its topic, in the order of docs/limits.md. */
export const LIMIT_TOPICS: Readonly<Record<string, Readonly<Record<string, Limit>>>> = {
  Requests: REQUESTS,
  'Accounts and quotas': ACCOUNTS,
  'Drops and generations': DROPS,
  'Files that people write': FILES,
  Processes: PROCESSES,
  'The console': CONSOLE,
};
