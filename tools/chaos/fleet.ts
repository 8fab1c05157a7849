/**
 * `make chaos-fleet`: three nodes share a ledger in PostgreSQL with a synchronous standby. Their network connections are cut, delayed and half
 * open, and their clocks are up to an hour wrong. Each round loads all nodes, causes one fault, and checks the counts: every 200 that a client
 * has read is charged; what is charged beyond that is at most what was in flight; no more than the limit is served.
 *
 * Only two faults allow deviations, and an exact number of them. A node that is lost for good takes with it what it had not reported. A
 * database that loses commits (asynchronous replication) may grant again what it had granted and no returning node knows.
 */
import { readOptions, refuse, wholeNumber } from '../options.ts';
import { Random } from '../random.ts';
import { FLEET_FAULTS, wrongClock } from './fleet/faults.ts';
import { FleetUnderTest } from './fleet/fleet-under-test.ts';
import { type RoundReport, runRound } from './fleet/round.ts';

const USAGE = `Usage: node tools/chaos/fleet.ts [--rounds 100] [--seed N] [--fault NAME]
Faults: ${Object.keys(FLEET_FAULTS).join(' · ')}`;

export interface FleetChaosOptions {
  readonly rounds: number;
  readonly seed: number;
  /** Causes only this fault, in each round. */
  readonly fault?: string;
  readonly onStart?: (round: number, fault: string) => void;
  readonly onRound?: (round: number, report: RoundReport, seconds: number) => void;
}

export interface FleetChaosReport {
  readonly seed: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Number of rounds in which the whole quota was used. */
  readonly drained: number;
  /** Number of 200 answers that clients have read. */
  readonly read: number;
  readonly charged: number;
  /** Number of requests that were cut. */
  readonly unanswered: number;
  /** Number of 503 answers, which charge nothing. */
  readonly unavailable: number;
  /** Lookups served beyond limits; more than 0 only if the database lost commits and a node was lost. */
  readonly oversold: number;
  /** Descriptions of what went wrong. */
  readonly failures: readonly string[];
}

/** Yields faults endlessly, in random order, but each once before any is repeated. */
function* faultsIn(random: Random): Generator<string> {
  for (;;) {
    const left = Object.keys(FLEET_FAULTS);
    while (left.length > 0) yield left.splice(random.below(left.length), 1)[0]!;
  }
}

export async function runFleetChaos(options: FleetChaosOptions): Promise<FleetChaosReport> {
  const random = new Random(options.seed);
  const startedMs = performance.now();
  const reports: RoundReport[] = [];
  const failures: string[] = [];
  const order = faultsIn(random);
  const fleet = await FleetUnderTest.create();
  try {
    for (const node of fleet.nodes) node.clockOffsetMs = wrongClock(random);
    for (let round = 0; round < options.rounds; round += 1) {
      const fault = options.fault ?? order.next().value!;
      options.onStart?.(round, fault);
      const roundMs = performance.now();
      const report = await runRound(fleet, random, `round-${round}`, fault).catch((error: Error) => {
        failures.push(`round ${round}, ${fault}: ${error.stack}`);
      });
      // After an error the state of the fleet is unknown, so there is no next round.
      if (report === undefined) break;
      reports.push(report);
      failures.push(...report.failures.map((failure) => `round ${round}, ${fault}: ${failure}`));
      options.onRound?.(round, report, (performance.now() - roundMs) / 1_000);
    }
  } finally {
    await fleet.remove();
  }
  const sum = (pick: (report: RoundReport) => number): number => reports.reduce((total, each) => total + pick(each), 0);
  const faults: Record<string, number> = {};
  for (const { fault } of reports) faults[fault] = (faults[fault] ?? 0) + 1;
  return {
    seed: options.seed,
    rounds: reports.length,
    seconds: Math.round((performance.now() - startedMs) / 1_000),
    faults,
    drained: sum(({ isDrained }) => (isDrained ? 1 : 0)),
    read: sum(({ read }) => read),
    charged: sum(({ charged }) => charged),
    unanswered: sum(({ unanswered }) => unanswered),
    unavailable: sum(({ unavailable }) => unavailable),
    oversold: sum(({ oversold }) => oversold),
    failures,
  };
}

async function main(): Promise<void> {
  const defaults = { rounds: '100', seed: String(Date.now() % 1_000_000), fault: '' };
  const { values } = await readOptions(USAGE, defaults);
  const rounds = wholeNumber(values, 'rounds', 1);
  const seed = wholeNumber(values, 'seed', 0);
  if (values.fault !== '' && FLEET_FAULTS[values.fault] === undefined)
    refuse(`--fault: there is no '${values.fault}'.`);
  const isTerminal = process.stdout.isTTY;
  const report = await runFleetChaos({
    rounds,
    seed,
    ...(values.fault === '' ? {} : { fault: values.fault }),
    onStart: (round, fault) => {
      if (isTerminal) process.stdout.write(`\r\x1b[Kround ${round + 1} of ${rounds}: ${fault} …`);
    },
    onRound: (round, { fault, read, charged, unanswered, unavailable, isDrained, failures }, seconds) => {
      const counts = `${read} read, ${charged} charged, ${unanswered} cut, ${unavailable} refused with 503`;
      const end = `${isDrained ? ', to the quota’s end' : ''} (${seconds.toFixed(1)} s)`;
      const line = `round ${round + 1}: ${fault}, ${counts}${end}${failures.map((failure) => `\n  FAILED: ${failure}`).join('')}`;
      process.stdout.write(`${isTerminal ? '\r\x1b[K' : ''}${line}\n`);
    },
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (report.failures.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
