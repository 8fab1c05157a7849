/**
 * `npm run bench -- fleet`: three nodes that share a ledger in PostgreSQL, compared in turn with three servers that have their own ledgers; and
 * the same nodes with a round trip of 50 ms to the database. Debian's PostgreSQL runs on the same machine.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FleetUnderTest } from '../../tools/chaos/fleet/fleet-under-test.ts';
import type { ChaosNode } from '../../tools/chaos/fleet/node.ts';
import { processTree } from '../../tools/chaos/leftovers.ts';
import { ServedInstallation } from '../../tools/chaos/served-installation.ts';
import { domainOf } from '../../tools/installation.ts';
import { LoadGenerator, processCpuUs } from '../forked-servers.ts';
import type { LoadTarget } from '../load-generator.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 9;
const ROUND_MS = 2_000;
/** Time until the measured rates, which determine the size of blocks, match the load. */
const WARM_UP_MS = 10_000;
const CONNECTIONS = 8;
const LIMIT = 1_000_000_000_000;
/** Delay in each direction. */
const FAR_MS = 25;

interface Sample {
  readonly cpuUs: number;
  readonly rate: number;
  readonly p99Us: number;
}

/** Three servers, each with a load generator. */
class Trio {
  readonly #generators = [new LoadGenerator(), new LoadGenerator(), new LoadGenerator()];
  readonly #targets: readonly LoadTarget[];
  readonly #pids: () => readonly number[];

  constructor(targets: readonly LoadTarget[], pids: () => readonly number[]) {
    this.#targets = targets;
    this.#pids = pids;
  }

  async measure(durationMs: number): Promise<Sample> {
    const pids = this.#pids();
    const used = (): number => pids.reduce((sum, pid) => sum + processCpuUs(pid), 0);
    const before = used();
    const reports = await Promise.all(
      this.#generators.map((generator, i) =>
        generator.run(this.#targets[i]!, CONNECTIONS, { requests: Number.POSITIVE_INFINITY, durationMs }),
      ),
    );
    const answered = reports.reduce((sum, report) => sum + report.answered, 0);
    return {
      cpuUs: (used() - before) / answered,
      rate: reports.reduce((sum, report) => sum + (report.answered * 1_000) / report.elapsedMs, 0),
      p99Us: Math.max(...reports.map((report) => report.p99Us)),
    };
  }

  async stop(): Promise<void> {
    for (const generator of this.#generators) await generator.stop();
  }
}

const waitedOf = async (nodes: readonly ChaosNode[]): Promise<number> => {
  const counts = await Promise.all(nodes.map((node) => node.metric('pagegate_wait_seconds_count')));
  return counts.reduce((sum, count) => sum + count, 0);
};

async function startAlone(requestsFile: string): Promise<{ servers: ServedInstallation[]; targets: LoadTarget[] }> {
  const servers: ServedInstallation[] = [];
  const targets: LoadTarget[] = [];
  for (let i = 0; i < 3; i += 1) {
    const server = await ServedInstallation.create({ workers: 1 });
    const key = await server.createAccount('bench', LIMIT);
    await server.start();
    await server.recovered(key);
    servers.push(server);
    targets.push({ port: server.port, requestsFile, keys: [key] });
  }
  return { servers, targets };
}

interface Measured {
  readonly name: string;
  readonly samples: Sample[];
  waited: number;
}

async function measureAll(log: (line: string) => void): Promise<{ measured: Measured[]; ratios: number[][] }> {
  const real = await FleetUnderTest.create({ hasOwnClock: false });
  const { key } = await real.createAccount('bench', LIMIT);
  await real.recovered();
  const requestsFile = join(real.nodes[0]!.place.root, 'requests.txt');
  writeFileSync(requestsFile, `/api/check?url=${domainOf(0)}\n`);
  const alone = await startAlone(requestsFile);
  const embedded = new Trio(alone.targets, () => alone.servers.flatMap(({ primary }) => processTree(primary)));
  const targets = real.nodes.map(({ port }) => ({ port, requestsFile, keys: [key] }));
  const fleet = new Trio(targets, () => real.nodes.flatMap(({ pids }) => pids));
  const setDelay = (ms: number): void => {
    for (const line of real.nodes.flatMap(({ lines }) => lines)) line.delayMs = ms;
  };
  const subjects = [
    { name: 'embedded', trio: embedded, delayMs: 0 },
    { name: 'fleet', trio: fleet, delayMs: 0 },
    { name: 'fleet, 50 ms away', trio: fleet, delayMs: FAR_MS },
  ];
  const measured = subjects.map(({ name }): Measured => ({ name, samples: [], waited: 0 }));
  try {
    for (const { trio } of subjects.slice(0, 2)) await trio.measure(WARM_UP_MS);
    for (let round = 0; round < ROUNDS; round += 1) {
      log(`round ${round + 1} of ${ROUNDS}`);
      for (const [i, { trio, delayMs }] of subjects.entries()) {
        setDelay(delayMs);
        // When a load begins, the state is not steady yet: it takes seconds until blocks match the rate.
        if (trio === fleet) await trio.measure(ROUND_MS);
        const before = await waitedOf(real.nodes);
        measured[i]!.samples.push(await trio.measure(ROUND_MS));
        measured[i]!.waited += (await waitedOf(real.nodes)) - before;
      }
    }
  } finally {
    await embedded.stop();
    await fleet.stop();
    for (const server of alone.servers) await server.remove();
    await real.remove();
  }
  const base = measured[0]!.samples;
  return { measured, ratios: measured.map(({ samples }) => samples.map(({ cpuUs }, i) => cpuUs / base[i]!.cpuUs)) };
}

export const workload: Workload = {
  name: 'fleet',
  description: 'three nodes on PostgreSQL beside three servers with ledgers of their own',
  recordsMax: 0,
  async run({ log }: BenchOptions): Promise<BenchReport> {
    const { measured, ratios } = await measureAll(log);
    const of = (samples: readonly Sample[], pick: (sample: Sample) => number): number =>
      Math.round(median(samples.map(pick)) * 10) / 10;
    return {
      rows: measured.map(({ name, samples, waited }, i) => ({
        subject: name,
        cpuUsPerRequest: of(samples, ({ cpuUs }) => cpuUs),
        cpuRatio: Number(median(ratios[i]!).toFixed(3)),
        cpuRatioLeast: Number(Math.min(...ratios[i]!).toFixed(3)),
        cpuRatioMost: Number(Math.max(...ratios[i]!).toFixed(3)),
        requestsPerSecond: of(samples, ({ rate }) => rate),
        p99Us: of(samples, ({ p99Us }) => p99Us),
        requestsThatWaited: name === 'embedded' ? null : waited,
      })),
      notes: [
        `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS / 1_000} s; three load generators with ${CONNECTIONS} connections each, one worker a node.`,
        'cpuUsPerRequest is user and system time of all processes of the three nodes, without PostgreSQL, which has the same cores.',
        'cpuRatio is that over the embedded ledger in the same round.',
        'requestsThatWaited counts requests that waited for a block, as pagegate_wait_seconds_count does, after two seconds of the same load.',
      ],
    };
  },
};
