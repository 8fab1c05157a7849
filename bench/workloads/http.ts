/**
 * `npm run bench -- http [--records N] [--beside CHECKOUT]`: the real server, compared with the bare transport that answers fixed bytes of the
 * same size with the same headers, and with a naive implementation. There is one base cell; each other cell varies one dimension.
 *
 * The main result is the processor time of all processes of a server per request, as a ratio within a round: it depends neither on the load
 * generator nor on other programs on the machine. With `--beside`, another checkout is measured in the same rounds.
 */
import { openIndex } from '../../src/index/read.ts';
import { CHECKOUT, ensureServedIndex } from '../data.ts';
import { LoadGenerator } from '../forked-servers.ts';
import {
  type ComparedServer,
  createTlsFiles,
  type FixedSubject,
  LOAD_CORE,
  type ProgramOptions,
  pinned,
  startFixed,
  startNaive,
  startProgram,
  type TlsFiles,
} from '../http/compared-servers.ts';
import { scheduledCpuUs } from '../http/cpu.ts';
import { bareTargets, MIX, mixedTargets, zipfTargets } from '../http/mix.ts';
import { type Contender, measure, takeTurns, targetOf, writeTargets } from '../http/rounds.ts';
import { rowOf, sampleOf } from '../http/rows.ts';
import { type Survey, survey } from '../http/survey.ts';
import { hasWrk, runWrk } from '../http/wrk.ts';
import type { LoadLength } from '../load-generator.ts';
import { dropFromPageCache } from '../page-cache.ts';
import { ensurePeers } from '../peers.ts';
import type { BenchOptions, BenchReport, Cell, Workload } from '../workload.ts';

const ROUNDS = 5;
const ROUND: LoadLength = { requests: 40_000, durationMs: 4_000, staysAwake: true };
/** Requests until the code of a server is fully optimized by the compiler. */
const WARM_UP: LoadLength = { requests: 150_000, durationMs: 60_000 };
/** Warm-up of a server that was already measured in another cell. */
const WARM_UP_AGAIN: LoadLength = { requests: 30_000, durationMs: 10_000 };
const WRK_SECONDS = 2;
const CONNECTIONS = 64;
const REQUESTS = 40_000;
const HOT_REQUESTS = 1_000;
const ACCOUNTS = 1_000;
const COLD: LoadLength = { requests: 20_000, durationMs: 4_000, staysAwake: true };
/** From this size on, only the base cell is measured. */
const LARGE = 40_000_000;
const SMALL = 1_000_000;

const OWN = 'pagegate';
const TRANSPORT = 'transport, fixed bytes';
const BY_WRK = ' by wrk';
const BY_SLEEPER = ' by a generator that sleeps';
const OTHER_GENERATORS = [BY_WRK, BY_SLEEPER];

interface CellPlan {
  readonly name: string;
  readonly targets: readonly string[];
  readonly connections?: number;
}

/** Returns the checkouts to measure: this one, and another if one is given. */
function checkoutsOf({ beside }: BenchOptions): { readonly name: string; readonly checkout: string }[] {
  const own = { name: OWN, checkout: CHECKOUT };
  return beside === undefined ? [own] : [own, { name: `${OWN} of ${beside}`, checkout: beside }];
}

function startPrograms(options: BenchOptions, settings: Partial<ProgramOptions> = {}): Promise<ComparedServer[]> {
  return Promise.all(
    checkoutsOf(options).map(({ name, checkout }) =>
      startProgram({ name, checkout, index: ensureServedIndex(options, checkout), ...settings }),
    ),
  );
}

class HttpBench {
  readonly rows: Record<string, Cell>[] = [];
  readonly surveys: string[] = [];
  readonly #options: BenchOptions;
  readonly #load = new LoadGenerator(pinned(LOAD_CORE));
  readonly #measured = new Set<ComparedServer>();

  constructor(options: BenchOptions) {
    this.#options = options;
  }

  stop(): Promise<void> {
    return this.#load.stop();
  }

  /** Measures the subjects in turn. `fixed` is set to answer like the first of them. */
  async cell(
    { name, targets, connections = CONNECTIONS }: CellPlan,
    fixed: FixedSubject,
    subjects: readonly ComparedServer[],
    { tls, others = () => [] }: { readonly tls?: TlsFiles; readonly others?: (file: string) => Contender[] } = {},
  ): Promise<void> {
    this.#options.log(name);
    const file = writeTargets(name, targets);
    const facts = await survey(subjects[0]!, targets, tls);
    await fixed.answerWith(facts.answer);
    this.surveys.push(surveyText(name, facts));
    const contender = (subject: ComparedServer): Contender => ({
      label: subject.name,
      measure: () => measure(subject, this.#load, targetOf(subject, file, tls), connections, ROUND),
    });
    const all = [contender(fixed), ...subjects.map(contender), ...others(file)];
    for (const subject of [fixed, ...subjects]) {
      const length = this.#measured.has(subject) ? WARM_UP_AGAIN : WARM_UP;
      await measure(subject, this.#load, targetOf(subject, file, tls), connections, length);
      this.#measured.add(subject);
    }
    const samples = await takeTurns(all, ROUNDS);
    for (const [i, { label }] of all.entries()) {
      // Compare the program with the transport as measured by the same generator.
      const by = OTHER_GENERATORS.find((generator) => label.endsWith(generator));
      const transport = by === undefined ? 0 : all.findIndex((other) => other.label === `${TRANSPORT}${by}`);
      this.rows.push(rowOf(name, label, samples[i]!, samples[transport]!));
    }
  }

  /** Measures the program and the transport with our generator when it sleeps while it waits, as `wrk` does. */
  asleep(subjects: readonly ComparedServer[]): (file: string) => Contender[] {
    const length = { ...ROUND, staysAwake: false };
    return (file) =>
      subjects.map((subject) => ({
        label: `${subject.name}${BY_SLEEPER}`,
        measure: () => measure(subject, this.#load, targetOf(subject, file, undefined), CONNECTIONS, length),
      }));
  }

  /** Measures the program and the transport with `wrk`. */
  wrk(subjects: readonly ComparedServer[]): (file: string) => Contender[] {
    if (!hasWrk(this.#options.log)) return () => [];
    return (file) =>
      subjects.map((subject) => ({
        label: `${subject.name}${BY_WRK}`,
        measure: async () => {
          const pids = subject.pids();
          const before = scheduledCpuUs(pids);
          const target = targetOf(subject, file, undefined);
          const report = await runWrk(pinned(LOAD_CORE), target, CONNECTIONS, WRK_SECONDS);
          return sampleOf(report, scheduledCpuUs(pids) - before);
        },
      }));
  }

  /** Measures a server after only a few requests, with an index file that is not in memory. Each round starts the server anew. */
  async cold(targets: readonly string[], fixed: FixedSubject): Promise<void> {
    const { log } = this.#options;
    log('cold');
    const hot = writeTargets('hot', targets.slice(0, HOT_REQUESTS));
    const unseen = writeTargets('unseen', targets.slice(HOT_REQUESTS));
    const contenders = checkoutsOf(this.#options).map(({ name, checkout }): Contender => {
      const index = ensureServedIndex(this.#options, checkout);
      return {
        label: name,
        measure: async () => {
          dropFromPageCache(index);
          const subject = await startProgram({ name, checkout, index, warm: false });
          try {
            await measure(subject, this.#load, targetOf(subject, hot, undefined), CONNECTIONS, WARM_UP);
            return await measure(subject, this.#load, targetOf(subject, unseen, undefined), CONNECTIONS, COLD);
          } finally {
            await subject.stop();
          }
        },
      };
    });
    const transport: Contender = {
      label: fixed.name,
      measure: () => measure(fixed, this.#load, targetOf(fixed, unseen, undefined), CONNECTIONS, COLD),
    };
    const samples = await takeTurns([transport, ...contenders], ROUNDS);
    for (const [i, { label }] of [transport, ...contenders].entries()) {
      this.rows.push(rowOf('cold', label, samples[i]!, samples[0]!));
    }
  }
}

function surveyText(name: string, { answer, found, verdicts }: Survey): string {
  const shares = Object.entries(verdicts).map(([verdict, share]) => `${verdict} ${share} %`);
  return `${name}: found ${found} %, ${shares.join(', ')}; the mean body has ${answer.bodySize} bytes.`;
}

/** Measures the cells that need a different server than the base cell. */
async function otherServers(bench: HttpBench, options: BenchOptions, targets: readonly string[]): Promise<void> {
  const run = async (
    plan: CellPlan,
    subjects: readonly ComparedServer[],
    fixed: FixedSubject,
    tls?: TlsFiles,
  ): Promise<void> => {
    try {
      await bench.cell(plan, fixed, subjects, tls === undefined ? {} : { tls });
    } finally {
      for (const subject of [...subjects, fixed]) await subject.stop();
    }
  };
  const tls = createTlsFiles();
  await run({ name: 'TLS', targets }, await startPrograms(options, { tls }), await startFixed(tls), tls);
  const [own] = checkoutsOf(options);
  const index = ensureServedIndex(options, own!.checkout);
  const many = await startProgram({ ...own!, index, accounts: ACCOUNTS });
  await run({ name: `${ACCOUNTS} accounts`, targets }, [many], await startFixed());
  if (options.records > SMALL) {
    const small = { ...options, records: SMALL };
    const smallTargets = mixedTargets(SMALL, REQUESTS, 1);
    const name = `${SMALL.toLocaleString('en-US')} records`;
    await run({ name, targets: smallTargets }, await startPrograms(small), await startFixed());
  }
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const { records, dir, log } = options;
  const index = openIndex(ensureServedIndex(options, checkoutsOf(options)[0]!.checkout));
  const { recordCount } = index.info;
  index.close();
  await ensurePeers(dir, ['sqlite'], records, log);
  const targets = mixedTargets(records, REQUESTS, 1);
  const bench = new HttpBench(options);
  try {
    const fixed = await startFixed();
    const programs = await startPrograms(options);
    const naive = await startNaive(dir, records);
    const both = [fixed, programs[0]!];
    const [asleep, wrk] = [bench.asleep(both), bench.wrk(both)];
    const others = (file: string): Contender[] => [...asleep(file), ...wrk(file)];
    await bench.cell({ name: 'base', targets }, fixed, [...programs, naive], { others });
    await naive.stop();
    if (records < LARGE) {
      const bare = bareTargets(records, REQUESTS, 2);
      await bench.cell({ name: 'bare domains', targets: bare }, fixed, programs);
      const zipf = zipfTargets(targets, HOT_REQUESTS, 3);
      await bench.cell({ name: `Zipf, ${HOT_REQUESTS} URLs`, targets: zipf }, fixed, programs);
      for (const connections of [1, 16, 256]) {
        const name = `${connections} connection${connections === 1 ? '' : 's'}`;
        await bench.cell({ name, targets, connections }, fixed, programs);
      }
    }
    for (const program of programs) await program.stop();
    if (records < LARGE) await bench.cold(mixedTargets(records, REQUESTS, 4), fixed);
    await fixed.stop();
    if (records < LARGE) await otherServers(bench, options, targets);
  } finally {
    await bench.stop();
  }
  const shares = Object.entries(MIX).map(([kind, share]) => `${kind} ${share} %`);
  return {
    rows: bench.rows,
    notes: [
      `Served: ${recordCount.toLocaleString('en-US')} records, of which ${records.toLocaleString('en-US')} are generated and the others the sample's, in one worker, from an index that is in memory, but for the cold cell.`,
      `Base cell: ${REQUESTS.toLocaleString('en-US')} URLs that differ (${shares.join(', ')}), six headers, one key, ${CONNECTIONS} connections, plain HTTP. Each other cell differs in what its name says.`,
      ...bench.surveys,
      `CPU µs: processor time a request of all processes of a server; medians of ${ROUNDS} interleaved rounds of ${ROUND.requests.toLocaleString('en-US')} requests. of transport: ratio to the fixed bytes in the same round, median, least, most. own µs: what is more than theirs.`,
      'p99/p50 ÷ transport: how much longer the slowest of a hundred take than the middle one, as a ratio to the same of the transport.',
      'The load generator looks for answers without a pause. One that sleeps, as wrk does, is woken by the kernel on the server’s time: with each answer of a server that is slower than it, hardly ever beside the transport alone. Two rows of the base cell show it.',
      'The servers have one core and the load generator the other; the generator is a JavaScript program and is the slower side beside the transport, so rates say less than processor time.',
      'The bench asks from one address, which is exempt from the burst limit.',
    ],
  };
}

export const workload: Workload = {
  name: 'http',
  description: 'the program as it is served, beside its transport alone and beside what one would write instead',
  run,
};
