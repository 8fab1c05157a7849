/**
 * `npm run bench -- profile`: the processor time of a request, by step. The sampling profiler runs inside the real server while it answers the
 * requests of the HTTP bench's base cell and then those for bare domains. Each sample counts for the innermost step in its stack. The shares are
 * converted to microseconds with the processor time that the same requests take without the profiler.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandOf, leaveNothing } from '../../tools/chaos/leftovers.ts';
import { CHECKOUT, ensureServedIndex } from '../data.ts';
import { LoadGenerator } from '../forked-servers.ts';
import {
  type ComparedServer,
  type FixedSubject,
  LOAD_CORE,
  pinned,
  startFixed,
  startProgram,
} from '../http/compared-servers.ts';
import { scheduledCpuUs } from '../http/cpu.ts';
import { bareTargets, mixedTargets } from '../http/mix.ts';
import { targetOf, writeTargets } from '../http/rounds.ts';
import { STEPS, stepOfFunction } from '../http/steps.ts';
import { survey } from '../http/survey.ts';
import type { LoadLength } from '../load-generator.ts';
import { type BenchOptions, type BenchReport, type Cell, median, type Workload } from '../workload.ts';

const REQUESTS = 40_000;
const ROUNDS = 5;
const ROUND: LoadLength = { requests: 40_000, durationMs: 4_000, staysAwake: true };
const WARM_UP: LoadLength = { requests: 150_000, durationMs: 60_000 };
const PROFILED: LoadLength = { requests: 150_000, durationMs: 60_000 };
const PROFILE_DEADLINE_MS = 30_000;
const PROBE = new URL('../http/cpu-profiler.ts', import.meta.url);

/** Calls into the transport that write an answer. They count for the transport, because the bare transport makes them, too. */
const SEND = /^(?:writeHeader|writeStatus|end|cork|endWithoutBody)$/;
const GARBAGE = 'garbage';
const TRANSPORT = 'transport and kernel';
const OTHER = 'Node.js';

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
}

/** Returns the number of samples of each step of our code. Time in the transport is not included: Node.js reports it as idle. */
function samplesByStep({ nodes, samples }: Profile): Map<string, number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const steps = new Map(nodes.map(({ id }) => [id, stepOf(id, byId, parents)]));
  const counts = new Map<string, number>();
  for (const id of samples) {
    const step = steps.get(id);
    if (step !== undefined) counts.set(step, (counts.get(step) ?? 0) + 1);
  }
  return counts;
}

/** Returns the step of a sample; undefined if it is not in our code. */
function stepOf(
  leaf: number,
  byId: ReadonlyMap<number, ProfileNode>,
  parents: ReadonlyMap<number, number>,
): string | undefined {
  const { functionName: name } = byId.get(leaf)!.callFrame;
  if (name === '(garbage collector)') return GARBAGE;
  if (/^\((?:idle|program|root)\)$/.test(name) || SEND.test(name)) return undefined;
  for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
    const { functionName, url } = byId.get(id)!.callFrame;
    const step = stepOfFunction(url, functionName);
    if (step !== undefined) return step;
  }
  return OTHER;
}

/** Records a profile of the worker under load. */
async function profile(worker: number, load: () => Promise<unknown>, folder: string): Promise<Profile> {
  process.kill(worker, 'SIGUSR2');
  await load();
  process.kill(worker, 'SIGUSR2');
  const deadline = Date.now() + PROFILE_DEADLINE_MS;
  for (;;) {
    await sleep(100);
    const file = readdirSync(folder).find((name) => name === `${worker}.cpuprofile`);
    const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8');
    if (text.endsWith('}')) {
      rmSync(join(folder, file!));
      return JSON.parse(text) as Profile;
    }
    if (Date.now() > deadline) throw new Error('The program wrote no profile.');
  }
}

interface Measured {
  readonly steps: ReadonlyMap<string, number>;
  /** Processor time per request without the profiler, of the worker and of the bare transport, in microseconds. */
  readonly workerUs: number;
  readonly fixedUs: number;
}

async function measureSteps(
  name: string,
  targets: readonly string[],
  subjects: { readonly program: ComparedServer; readonly fixed: FixedSubject; readonly load: LoadGenerator },
  folder: string,
): Promise<Measured> {
  const { program, fixed, load } = subjects;
  const file = writeTargets(name, targets);
  const worker = program.pids().find((pid) => commandOf(pid).includes('worker-process'))!;
  const ask = async (subject: ComparedServer, pids: readonly number[], length = ROUND): Promise<number> => {
    let before = 0;
    const { answered } = await load.run(targetOf(subject, file, undefined), 64, length, () => {
      before = scheduledCpuUs(pids);
    });
    return (scheduledCpuUs(pids) - before) / answered;
  };
  const { answer } = await survey(program, targets);
  await fixed.answerWith(answer);
  await ask(program, [worker], WARM_UP);
  await ask(fixed, fixed.pids(), WARM_UP);
  const own: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await ask(program, [worker]));
    bare.push(await ask(fixed, fixed.pids()));
  }
  const steps = samplesByStep(await profile(worker, () => ask(program, [worker], PROFILED), folder));
  return { steps, workerUs: median(own), fixedUs: median(bare) };
}

/** Returns the rows of the table. The transport's row is the time of the bare transport; the rest of the worker's time is divided by samples. */
function rowsOf(measured: Readonly<Record<string, Measured>>): Record<string, Cell>[] {
  const names = [TRANSPORT, ...STEPS.map(({ name }) => name), GARBAGE, OTHER];
  const usOf = ({ steps, workerUs, fixedUs }: Measured, step: string): number => {
    if (step === TRANSPORT) return fixedUs;
    const all = [...steps.values()].reduce((sum, count) => sum + count, 0);
    return ((workerUs - fixedUs) * (steps.get(step) ?? 0)) / all;
  };
  return names.map((step) => ({
    step,
    ...Object.fromEntries(
      Object.entries(measured).flatMap(([name, cell]) => [
        [`${name}, µs`, Number(usOf(cell, step).toFixed(2))],
        [`${name}, %`, Number(((100 * usOf(cell, step)) / cell.workerUs).toFixed(1))],
      ]),
    ),
  }));
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const { records, log } = options;
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-bench-profile-'));
  leaveNothing(folder);
  const index = ensureServedIndex(options, CHECKOUT);
  const environment = { PROFILE_DIR: folder, NODE_OPTIONS: `--import ${PROBE.href}` };
  const load = new LoadGenerator(pinned(LOAD_CORE));
  const fixed = await startFixed();
  const program = await startProgram({ name: 'pagegate', checkout: CHECKOUT, index, environment });
  try {
    const subjects = { program, fixed, load };
    log('base cell');
    const base = await measureSteps('base', mixedTargets(records, REQUESTS, 1), subjects, folder);
    log('bare domains');
    const bare = await measureSteps('bare', bareTargets(records, REQUESTS, 2), subjects, folder);
    const text = ({ workerUs, fixedUs, steps }: Measured): string => {
      const all = [...steps.values()].reduce((sum, count) => sum + count, 0);
      return `${workerUs.toFixed(1)} µs of the worker a request, ${fixedUs.toFixed(1)} µs of the transport answering fixed bytes (${all.toLocaleString('en-US')} samples)`;
    };
    return {
      rows: rowsOf({ base, bare }),
      notes: [
        `base: the HTTP bench's mix of page URLs, ${text(base)}. bare: domains alone, ${text(bare)}.`,
        'transport and kernel: what the transport takes alone in the same rounds. What the worker takes beyond that, without the profiler, is divided among the steps by the samples of the profiler.',
        'A sample counts for the innermost step that its stack names: a record read for the policy is "record".',
      ],
    };
  } finally {
    await load.stop();
    await program.stop();
    await fixed.stop();
  }
}

export const workload: Workload = {
  name: 'profile',
  description: "where a request's time goes, by step",
  run,
};
