/** A container on this host's own /usr, run by a real systemd, with the program in /opt and a state directory as on a host. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { childrenOf, commandOf, leaveNothing } from '../../tools/chaos/leftovers.ts';
import { activate, createInstallation, type Installation } from '../../tools/installation.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BOOT_DEADLINE_MS = 120_000;
const STATE = '/var/lib/pagegate';

/** The output and exit status of a command. */
export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class Container {
  readonly place: Installation;
  readonly #nspawn: ChildProcess;
  #leader = 0;

  private constructor(place: Installation, nspawn: ChildProcess) {
    this.place = place;
    this.#nspawn = nspawn;
  }

  /** Boots with an index, a license, a newer drop in /etc/pagegate and the shipped units. `place.root/opt` is its /opt. */
  static async boot(ports: { readonly port: number; readonly adminPort: number }): Promise<Container> {
    if (process.getuid?.() !== 0) throw new Error('This starts a container, which only root may. Run it as root.');
    const place = createInstallation();
    leaveNothing(place.root);
    await activate(place, { revision: 1, domains: 10 });
    const [opt, etc] = [join(place.root, 'opt'), join(place.root, 'etc')];
    mkdirSync(opt, { recursive: true });
    mkdirSync(etc);
    const config = {
      ...JSON.parse(readFileSync(place.configFile, 'utf8')),
      state_dir: STATE,
      server: { port: ports.port, workers: 2 },
      admin: { port: ports.adminPort },
      burst: { exempt: ['127.0.0.1'] },
    };
    writeFileSync(join(etc, 'config.json'), JSON.stringify(config));
    const user = join(place.root, 'sysusers.conf');
    writeFileSync(user, `u pagegate - - ${STATE}\n`);
    cpSync(join(ROOT, 'tools/packaging/systemd'), join(etc, 'units'), { recursive: true });
    cpSync(place.drop('r2', { revision: 2, domains: 12 }), join(etc, 'drop'), { recursive: true });
    const binds = {
      [opt]: '/opt',
      [etc]: '/etc/pagegate',
      [place.state]: STATE,
      [user]: '/etc/sysusers.d/pagegate.conf',
    };
    // If systemd does not run this host, no other program creates a unit for the container.
    const alone = readFileSync('/proc/1/comm', 'utf8').trim() === 'systemd' ? [] : ['--register=no', '--keep-unit'];
    const flags = Object.entries(binds).map(([from, to]) => `--bind=${from}:${to}`);
    const nspawn = spawn(
      'systemd-nspawn',
      [
        '--quiet',
        '--boot',
        '--directory=/',
        '--volatile=yes',
        `--machine=pagegate-${process.pid}`,
        '--console=pipe',
        ...alone,
        ...flags,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' } },
    );
    const container = new Container(place, nspawn);
    await container.#booted();
    await container.run('chown', '-R', 'pagegate:pagegate', STATE);
    // Not earlier: the first boot starts every unit that exists.
    await container.run('/bin/sh', '-c', 'cp /etc/pagegate/units/* /etc/systemd/system/');
    await container.run('systemctl', 'daemon-reload');
    return container;
  }

  async #booted(): Promise<void> {
    for (const deadline = Date.now() + BOOT_DEADLINE_MS; Date.now() < deadline; await sleep(200)) {
      if (this.#nspawn.exitCode !== null) throw new Error(`The container ended with code ${this.#nspawn.exitCode}.`);
      this.#leader = childrenOf(this.#nspawn.pid!).find((pid) => commandOf(pid).includes('systemd ')) ?? 0;
      if (this.#leader === 0) continue;
      const { stdout } = await this.run('systemctl', 'is-system-running');
      // Some of the host's own units cannot run in a container.
      if (/^(?:running|degraded)$/.test(stdout.trim())) return;
    }
    throw new Error('The container did not boot in time.');
  }

  /** Runs a command in the container as root. */
  async run(...command: string[]): Promise<Result> {
    const enter = ['--target', String(this.#leader), '--mount', '--pid', '--uts', '--ipc', '--cgroup', '--'];
    try {
      return { code: 0, ...(await run('nsenter', [...enter, ...command], { timeout: 300_000 })) };
    } catch (error) {
      const { code, stdout, stderr } = error as Result;
      return { code, stdout, stderr };
    }
  }

  /** Returns a property of the service. */
  async show(property: string): Promise<string> {
    return (await this.run('systemctl', 'show', '--value', '--property', property, 'pagegate')).stdout.trim();
  }

  /**
   * Runs the program as the service's user, with `--json`, in the mount namespace of the service. Outside it the container has another boot id, and
   * shared counters of another boot are not trusted.
   */
  async pagegate(...args: string[]): Promise<Record<string, unknown>> {
    const pid = await this.show('MainPID');
    const mounts = pid === '0' ? [] : ['nsenter', '--target', pid, '--mount', '--'];
    const user = ['setpriv', '--reuid', 'pagegate', '--regid', 'pagegate', '--init-groups'];
    const program = ['/opt/pagegate/pagegate', ...args, '--config', '/etc/pagegate/config.json', '--json'];
    const { code, stdout, stderr } = await this.run(...mounts, ...user, ...program);
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  async stop(): Promise<void> {
    const ended = once(this.#nspawn, 'exit');
    if (this.#nspawn.exitCode === null) {
      this.#nspawn.kill('SIGTERM');
      await ended;
    }
    this.place.remove();
  }
}
