/** The steps of a request in order, with the functions of the program that belong to each. */

interface Step {
  readonly name: string;
  /** Files and folders of `src/`. A folder includes everything in it. */
  readonly places: readonly string[];
  /** Names of functions in any file. */
  readonly functions?: readonly string[];
}

/** A function belongs to the first step that lists its name, its file or a folder above it. */
export const STEPS: readonly Step[] = [
  {
    name: 'headers and client',
    places: ['server/request/burst-limit.ts', 'server/request/connection-close.ts', 'network/'],
    functions: ['#admit', 'readFrom', '#readHeader'],
  },
  { name: 'query', places: ['server/request/query.ts'] },
  { name: 'key', places: ['ledger/store/'], functions: ['authenticate', '#lookUp', 'keyProblem'] },
  { name: 'charge', places: ['ledger/'] },
  { name: 'canonical URL', places: ['domain/', 'server/request/input.ts'] },
  { name: 'policy', places: ['policy/'] },
  { name: 'record', places: ['index/', 'server/record-evidence.ts'] },
  { name: 'render', places: ['server/request/answer-body.ts'] },
  {
    name: 'log and metrics',
    places: [
      'server/admin/metric-counters.ts',
      'server/request/decision-log.ts',
      'server/request/refusal-log.ts',
      'server/request/request-counters.ts',
      'server/request/mask.ts',
      'server/log.ts',
    ],
    functions: ['#record'],
  },
  { name: 'the handler itself', places: ['server/'] },
];

/** Returns the step of a function; undefined if it belongs to none. `url` is the URL of its file. */
export function stepOfFunction(url: string, name: string): string | undefined {
  return STEPS.find(
    ({ places, functions = [] }) =>
      functions.includes(name) ||
      places.some((place) => (place.endsWith('/') ? url.includes(`/src/${place}`) : url.endsWith(`/src/${place}`))),
  )?.name;
}
