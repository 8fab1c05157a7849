/** The servers of the HTTP bench, each pinned to one core: the program of a checkout, the bare transport, and a naive implementation. */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openLedger } from '../../src/ledger/open.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { leaveNothing, processTree } from '../../tools/chaos/leftovers.ts';
import { DATASET_ID } from '../../tools/dataset/folder.ts';
import { freePort } from '../../tools/free-port.ts';
import { createInstallation, type Installation } from '../../tools/installation.ts';
import { nextMessage } from '../forked-servers.ts';
import type { FixedAnswer } from './fixed.ts';

const START_DEADLINE_MS = 120_000;
/** A quota that no bench exhausts. */
const LIMIT = 1_000_000_000_000;

/** Returns the beginning of a command line that pins a program to a core. Empty if the system lacks `taskset`. */
export function pinned(core: number): string[] {
  return spawnSync('taskset', ['-V']).error === undefined ? ['taskset', '-c', String(core)] : [];
}

/** Servers run on the first core, load generators on the second. */
const SERVER_CORE = 0;
export const LOAD_CORE = 1;

function spawnPinned(command: readonly string[], options: SpawnOptions): ChildProcess {
  const [program = '', ...args] = [...pinned(SERVER_CORE), ...command];
  return spawn(program, args, options);
}

export interface TlsFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly certificate: string;
}

/** Creates a certificate for localhost in a folder that is removed at the end of the run. */
export function createTlsFiles(): TlsFiles {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-bench-tls-'));
  leaveNothing(folder);
  const { certificate, key } = createCertificate('localhost');
  const files = { certificateFile: join(folder, 'certificate.pem'), keyFile: join(folder, 'key.pem'), certificate };
  writeFileSync(files.certificateFile, certificate);
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  return files;
}

/** A server to be measured. */
export interface ComparedServer {
  readonly name: string;
  readonly port: number;
  readonly keys: readonly string[];
  /** Returns the ids of all its processes. */
  pids(): number[];
  stop(): Promise<void>;
}

export interface ProgramOptions {
  readonly name: string;
  /** Folder of a checkout with its packages installed. */
  readonly checkout: string;
  readonly index: string;
  readonly tls?: TlsFiles | undefined;
  /** Whether the index is read into memory at the start; otherwise it is read on demand. */
  readonly warm?: boolean;
  /** Number of accounts, each with one key. */
  readonly accounts?: number;
  readonly environment?: NodeJS.ProcessEnv;
}

/** Creates accounts. A single one is created with the program's commands, which every version has; several with this checkout's ledger code. */
async function createAccounts(place: Installation, { checkout, accounts = 1 }: ProgramOptions): Promise<string[]> {
  if (accounts === 1) {
    const account = (...args: string[]): { key: string } =>
      JSON.parse(
        execFileSync(`${checkout}/src/pagegate`, ['account', ...args, '--config', place.configFile, '--json'], {
          encoding: 'utf8',
        }),
      );
    account('create', 'bench');
    return [account('subscribe', 'bench', '--plan', 'custom', '--limit', String(LIMIT), '--reference', 'B-1').key];
  }
  const file = join(place.state, 'ledger/ledger.sqlite');
  const ledger = await openLedger({ file, keyFile: join(place.state, 'keys/ledger.key'), actor: 'bench' });
  const keys: string[] = [];
  for (let i = 0; i < accounts; i++) {
    const name = `bench-${i}`;
    await ledger.createAccount(name);
    keys.push((await ledger.subscribe(name, 'custom', `B-${i}`, LIMIT)).issued!.key);
  }
  await ledger.close();
  return keys;
}

/** Starts `pagegate serve` with one worker, as an operator does. Its ledger writer and its primary process are measured, too. */
export async function startProgram(options: ProgramOptions): Promise<ComparedServer> {
  const { name, checkout, index, tls, warm = true, environment } = options;
  // All requests of the bench come from one address, so it is exempt from the burst limit, like a gateway for many agents.
  const place = createInstallation({ config: { burst: { exempt: ['127.0.0.1'] } }, dataset: DATASET_ID });
  leaveNothing(place.root);
  const keys = await createAccounts(place, options);
  const port = await freePort();
  const command = [`${checkout}/src/pagegate`, 'serve', '--config', place.configFile, '--port', String(port)];
  const flags = ['--workers', '1', '--admin-port', '0', '--index', index, ...(warm ? ['--warm'] : [])];
  const secure = tls === undefined ? [] : ['--tls-certificate', tls.certificateFile, '--tls-key', tls.keyFile];
  const child = spawnPinned([...command, ...flags, ...secure], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let log = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-10_000);
  });
  const deadline = Date.now() + START_DEADLINE_MS;
  while ((await statusOf(port, keys[0]!, tls)) !== 200) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${name} did not start:\n${log}`);
    await sleep(50);
  }
  return {
    name,
    port,
    keys,
    pids: () => processTree(child.pid!),
    stop: async () => {
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      place.remove();
    },
  };
}

/** Resolves with the status of one lookup; with undefined if no server answers. */
function statusOf(port: number, key: string, tls: TlsFiles | undefined): Promise<number | undefined> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/api/check?url=example.com', headers: { 'x-api-key': key } };
    const request =
      tls === undefined ? get(options) : getTls({ ...options, ca: tls.certificate, servername: 'localhost' });
    request.on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', () => resolve(undefined));
  });
}

async function startScript(name: string, script: string, args: readonly string[]): Promise<ChildProcess> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawnPinned([process.execPath, path, ...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  if ((await nextMessage(child)) !== 'listening') throw new Error(`${name} does not listen.`);
  return child;
}

async function stopScript(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.disconnect();
  await once(child, 'exit');
}

/** The bare transport, which answers fixed bytes. */
export interface FixedSubject extends ComparedServer {
  /** Sets the answer to all further requests. */
  answerWith(answer: FixedAnswer): Promise<void>;
}

export async function startFixed(tls?: TlsFiles): Promise<FixedSubject> {
  const port = await freePort();
  const files = tls === undefined ? [] : [tls.certificateFile, tls.keyFile];
  const child = await startScript('fixed', './fixed.ts', [String(port), ...files]);
  return {
    name: 'transport, fixed bytes',
    port,
    keys: ['pg_0000000000000000000000000000000000000'],
    pids: () => processTree(child.pid!),
    stop: () => stopScript(child),
    answerWith: async (answer) => {
      child.send(answer);
      await nextMessage(child);
    },
  };
}

export async function startNaive(dir: string, records: number): Promise<ComparedServer> {
  const port = await freePort();
  const state = mkdtempSync(join(tmpdir(), 'pagegate-bench-naive-'));
  leaveNothing(state);
  const key = 'pg_0000000000000000000000000000000000001';
  const child = await startScript('naive', './naive.ts', [String(port), dir, String(records), state, key]);
  return {
    name: 'node:http + better-sqlite3 + naive rules',
    port,
    keys: [key],
    pids: () => processTree(child.pid!),
    stop: async () => {
      await stopScript(child);
      rmSync(state, { recursive: true, force: true });
    },
  };
}
