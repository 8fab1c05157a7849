/**
 * `make chaos-restart`: a real server under load is restarted and upgraded many times. No request may be refused or lost, and every
 * lookup that was read must be charged once. Versions that do not start, hang or die must not take over. The old or the new primary process is
 * killed at random moments: afterwards a server must run or be startable, and the counts must be right.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PagegateError } from '../../src/errors.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { askServer } from '../../src/server/control-socket.ts';
import type { RestartReply, ServerStatus } from '../../src/server/status.ts';
import { createCertificate } from '../certificate.ts';
import { freePort } from '../free-port.ts';
import { activate, createInstallation, type Installation } from '../installation.ts';
import { readOptions, wholeNumber } from '../options.ts';
import { Random } from '../random.ts';
import { DISTRIBUTION_FAULTS, type DistributionFault, Distributions } from './distributions.ts';
import { childrenOf, commandOf, leaveNothing } from './leftovers.ts';
import { keepStarting, ServerProcess } from './server-process.ts';
import { SteadyClients } from './steady-clients.ts';

const USAGE =
  'Usage: node tools/chaos/restart.ts [--restarts 50] [--upgrades 10] [--broken 20] [--kills 100] [--packed 1] [--seed N]';

const VERSIONS = ['0.1.0', '0.2.0'] as const;
const ACCOUNT = 'gateway';
const LIMIT = 1_000_000_000;
/** After this time a version that hangs is given up. Longer than any start takes. */
const HANG_WAIT_SECONDS = 15;
const WAIT_SECONDS = 300;
/** Longer than any takeover. Processes are killed at a random moment within this time. */
const HAND_OVER_MS = 6_000;
const DEADLINE_MS = 60_000;

export interface RestartOptions {
  readonly restarts: number;
  readonly upgrades: number;
  readonly broken: number;
  readonly kills: number;
  readonly seed: number;
  /** Uses complete distributions for the upgrades, as `make dist` packs them. */
  readonly packed?: boolean;
  readonly onRound?: (line: string) => void;
}

export interface RestartReport extends RestartOptions {
  /** Number of requests sent during restarts, upgrades and broken versions; those not answered 200 are failures. */
  readonly asked: number;
  readonly read: number;
  readonly charged: number;
  /** Number of requests that a broken version cut, because its workers died. */
  readonly cut: number;
  /** The most lookups that one round with a kill charged beyond what was read. */
  readonly worstSurplus: number;
  /** How long each takeover took. */
  readonly handOverMs: readonly number[];
  /** Descriptions of what went wrong. */
  readonly failures: readonly string[];
}

interface Setup {
  readonly isTls: boolean;
  readonly workers: number;
}

const SETUPS: readonly Setup[] = [
  { isTls: false, workers: 2 },
  { isTls: true, workers: 1 },
  { isTls: false, workers: 1 },
  { isTls: true, workers: 2 },
];

/** A served installation. Different processes may serve it one after the other. */
class Scene {
  readonly place: Installation;
  readonly setup: Setup;
  readonly distributions: Distributions;
  key = '';
  port = 0;
  #first: ServerProcess | undefined;
  readonly #ledger: Ledger;

  private constructor(place: Installation, ledger: Ledger, setup: Setup, distributions: Distributions) {
    this.#ledger = ledger;
    this.place = place;
    this.setup = setup;
    this.distributions = distributions;
  }

  static async create(setup: Setup, packed: boolean): Promise<Scene> {
    const place = createInstallation();
    leaveNothing(place.root);
    const { certificate, key } = createCertificate('localhost');
    const files = { certificate_file: join(place.root, 'chain.pem'), key_file: join(place.root, 'key.pem') };
    writeFileSync(files.certificate_file, certificate);
    writeFileSync(files.key_file, key, { mode: 0o600 });
    const config = JSON.parse(readFileSync(place.configFile, 'utf8'));
    writeFileSync(
      place.configFile,
      JSON.stringify({ ...config, burst: { exempt: ['127.0.0.1'] }, ...(setup.isTls ? { tls: files } : {}) }),
    );
    await activate(place, { revision: 1, domains: 10 });
    const distributions = new Distributions(place.root, packed);
    for (const version of VERSIONS) await distributions.make(version);
    distributions.use(VERSIONS[0]);
    const [file, keyFile] = [join(place.state, 'ledger/ledger.sqlite'), join(place.state, 'keys/ledger.key')];
    const ledger = await openLedger({ file, keyFile, actor: 'chaos' });
    const scene = new Scene(place, ledger, setup, distributions);
    await scene.#ledger.createAccount(ACCOUNT);
    scene.key = (await scene.#ledger.subscribe(ACCOUNT, 'custom', 'PAY', LIMIT)).issued?.key ?? '';
    scene.port = await freePort();
    await scene.start();
    return scene;
  }

  get socket(): string {
    return join(this.place.state, 'run/pagegate.sock');
  }

  /** The end of the output of all its servers. */
  get log(): string {
    return this.#first?.log ?? '';
  }

  async start(): Promise<void> {
    const { port, setup, place, distributions } = this;
    await keepStarting(() => {
      this.#first = new ServerProcess(place.configFile, { port, workers: setup.workers }, [], distributions.program);
      return this.#first;
    });
  }

  status(): Promise<ServerStatus> {
    return askServer(this.socket, 'status', 10_000) as Promise<ServerStatus>;
  }

  /** Process id of the running server's primary process; 0 if no server runs. */
  async primary(): Promise<number> {
    return this.status().then(
      ({ pid }) => pid,
      () => 0,
    );
  }

  async restart(waitSeconds = WAIT_SECONDS): Promise<RestartReply> {
    const options = { wait_seconds: waitSeconds };
    return (await askServer(this.socket, 'restart', (waitSeconds + 90) * 1_000, options)) as RestartReply;
  }

  async charged(): Promise<number> {
    return (await this.#ledger.view(ACCOUNT)).quota.quota_used;
  }

  clients(): SteadyClients {
    const { port, key, setup } = this;
    return new SteadyClients({ port, key, isTls: setup.isTls, kept: 8, slow: 6, fresh: 6 });
  }

  async stop(): Promise<void> {
    const pid = await this.primary();
    if (pid > 0) process.kill(pid, 'SIGTERM');
    await gone(pid);
  }

  remove(): void {
    this.#ledger.close();
    this.place.remove();
  }
}

async function gone(pid: number): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (pid > 0 && commandOf(pid) !== '' && Date.now() < deadline) await sleep(20);
}

/** Runs a task under load. Returns the clients with their counts, what was charged meanwhile, and the task's errors. */
async function underLoad(
  scene: Scene,
  task: (clients: SteadyClients) => Promise<void>,
): Promise<{ readonly clients: SteadyClients; readonly charged: number; readonly problems: string[] }> {
  const before = await scene.charged();
  const clients = scene.clients();
  clients.start();
  const problems: string[] = [];
  try {
    await task(clients);
  } catch (error) {
    problems.push(`${(error as Error).message}\n${scene.log.slice(-3_000)}`);
  } finally {
    await clients.stop();
  }
  return { clients, charged: (await scene.charged()) - before, problems };
}

class Run {
  readonly failures: string[] = [];
  readonly handOverMs: number[] = [];
  asked = 0;
  read = 0;
  charged = 0;
  cut = 0;
  worstSurplus = 0;
  readonly options: RestartOptions;
  readonly random: Random;

  constructor(options: RestartOptions) {
    this.options = options;
    this.random = new Random(options.seed);
  }

  /**
   * Runs a round in which no request may be lost and every lookup that was read must be charged.
   *
   * @param cuts requests may be lost, because the fault cuts connections.
   */
  async lossless(name: string, scene: Scene, task: () => Promise<void>, cuts = false): Promise<void> {
    const { clients, charged, problems } = await underLoad(scene, task);
    const label = `${name} (${scene.setup.isTls ? 'TLS' : 'plain'}, ${scene.setup.workers} workers)`;
    for (const problem of problems) this.failures.push(`${label}: ${problem}`);
    for (const [what, times] of clients.failures) {
      if (cuts) this.cut += times;
      else this.failures.push(`${label}: ${times} requests: ${what}`);
    }
    const most = clients.read + (cuts ? clients.asked - clients.read : 0);
    if (charged < clients.read || charged > most)
      this.failures.push(`${label}: ${clients.read} read, ${charged} charged`);
    this.asked += clients.asked;
    this.read += clients.read;
    this.charged += charged;
    this.options.onRound?.(`${label}: ${clients.asked} asked, ${clients.read} read, ${charged} charged`);
  }

  async timed(scene: Scene, version: string): Promise<void> {
    const before = await scene.primary();
    const startedMs = performance.now();
    const reply = await scene.restart();
    this.handOverMs.push(Math.round(performance.now() - startedMs));
    if (reply.version !== version) this.failures.push(`version ${reply.version} instead of ${version} took over`);
    // The old server ends when its clients have closed their connections.
    await gone(before);
    const { pid, ready, reasons } = await scene.status();
    if (pid !== reply.pid) this.failures.push(`process ${pid} instead of ${reply.pid} serves`);
    if (!ready) this.failures.push(`it is not ready: ${reasons.join('; ')}`);
  }

  /** Restarts to a version that must not take over: the running server must keep serving. */
  async broken(scene: Scene, label: string, version: string, { refusal, hangs }: DistributionFault): Promise<void> {
    scene.distributions.use(version);
    const before = await scene.primary();
    const error = await scene.restart(hangs ? HANG_WAIT_SECONDS : WAIT_SECONDS).then(
      () => undefined,
      (failure: PagegateError) => failure,
    );
    if (error?.message.includes(refusal) !== true)
      this.failures.push(`${label}: expected to be refused by "${refusal}", got ${error?.code} ${error?.message}`);
    const after = await scene.status();
    if (after.pid !== before || !after.ready)
      this.failures.push(`${label}: ${before} served before, ${after.pid} after; ${after.reasons.join()}`);
    scene.distributions.use(VERSIONS[0]);
  }

  /** Kills the old or the new primary process during a restart. */
  async kill(scene: Scene, round: number): Promise<void> {
    const isOld = this.random.below(2) === 0;
    const atMs = this.random.below(HAND_OVER_MS);
    const label = `kill ${round} of the ${isOld ? 'old' : 'new'} one after ${atMs} ms`;
    const { clients, charged, problems } = await underLoad(scene, async () => {
      const old = await scene.primary();
      const restarting = scene.restart().catch(() => undefined);
      await sleep(atMs);
      const successor = childrenOf(old).find((pid) => commandOf(pid).includes(' serve ')) ?? (await scene.primary());
      const victim = isOld ? old : successor;
      if (victim > 0 && commandOf(victim) !== '') process.kill(victim, 'SIGKILL');
      await restarting;
      await this.#settle(scene, [old, successor]);
    });
    for (const problem of problems) this.failures.push(`${label}: ${problem}`);
    const lost = clients.asked - clients.read;
    if (charged < clients.read) this.failures.push(`${label}: ${clients.read} read, only ${charged} charged`);
    if (charged > clients.read + lost)
      this.failures.push(`${label}: ${clients.read} read, ${lost} lost, ${charged} charged`);
    this.worstSurplus = Math.max(this.worstSurplus, charged - clients.read);
    this.options.onRound?.(`${label}: ${clients.read} read, ${lost} lost, ${charged} charged`);
  }

  /** Waits until exactly one server runs and is ready. Starts one if none is left. */
  async #settle(scene: Scene, pids: readonly number[]): Promise<void> {
    const deadline = Date.now() + DEADLINE_MS;
    for (;;) {
      const status = await scene.status().catch(() => undefined);
      const others = pids.filter((pid) => pid !== status?.pid && pid > 0 && commandOf(pid) !== '');
      if (status?.ready === true && others.length === 0) return;
      if (status === undefined && others.length === 0) await scene.start();
      if (Date.now() > deadline) throw new Error(`no server is ready: ${JSON.stringify(status)}`);
      await sleep(100);
    }
  }
}

const share = (rounds: number, setup: number): number =>
  Math.floor(rounds / SETUPS.length) + (setup < rounds % SETUPS.length ? 1 : 0);

async function runSetup(run: Run, number: number): Promise<void> {
  const { restarts, upgrades, broken, kills, packed = false } = run.options;
  const counts = [restarts, upgrades, broken, kills].map((rounds) => share(rounds, number));
  const [ofRestarts = 0, ofUpgrades = 0, ofBroken = 0, ofKills = 0] = counts;
  if (counts.every((rounds) => rounds === 0)) return;
  const scene = await Scene.create(SETUPS[number]!, packed);
  try {
    for (let i = 0; i < ofRestarts; i += 1)
      await run.lossless(`restart ${i}`, scene, () => run.timed(scene, VERSIONS[0]));
    let version = 0;
    for (let i = 0; i < ofUpgrades; i += 1) {
      version = 1 - version;
      scene.distributions.use(VERSIONS[version]!);
      await run.lossless(`to version ${VERSIONS[version]}`, scene, () => run.timed(scene, VERSIONS[version]!));
    }
    const faults = Object.entries(DISTRIBUTION_FAULTS);
    for (let i = 0; i < ofBroken; i += 1) {
      const [fault, change] = faults[(i * SETUPS.length + number) % faults.length]!;
      const name = `0.3.${i}`;
      const label = `a version that ${fault}`;
      await scene.distributions.make(name, change);
      await run.lossless(label, scene, () => run.broken(scene, label, name, change), change.cutsConnections);
    }
    for (let i = 0; i < ofKills; i += 1) await run.kill(scene, i);
    await scene.stop();
  } catch (error) {
    run.failures.push(`${(error as Error).stack}\n${scene.log.slice(-3_000)}`);
  } finally {
    scene.remove();
  }
}

export async function runRestarts(options: RestartOptions): Promise<RestartReport> {
  const run = new Run(options);
  for (const number of SETUPS.keys()) await runSetup(run, number);
  const { asked, read, charged, cut, worstSurplus, handOverMs, failures } = run;
  return { ...options, asked, read, charged, cut, worstSurplus, handOverMs, failures };
}

async function main(): Promise<void> {
  const seed = String(Date.now() % 1_000_000);
  const defaults = { restarts: '50', upgrades: '10', broken: '20', kills: '100', packed: '1', seed };
  const { values } = await readOptions(USAGE, defaults);
  const number = (name: 'restarts' | 'upgrades' | 'broken' | 'kills' | 'packed' | 'seed'): number =>
    wholeNumber(values, name, 0);
  const report = await runRestarts({
    restarts: number('restarts'),
    upgrades: number('upgrades'),
    broken: number('broken'),
    kills: number('kills'),
    seed: number('seed'),
    packed: number('packed') > 0,
    onRound: (line) => void process.stdout.write(`${line}\n`),
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (report.failures.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
