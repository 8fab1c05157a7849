/**
 * Tries a tarball as an offline host would: unpacks it into an empty folder, checks its checksums, and runs it with an empty
 * environment and, where the machine allows it, without a network. Ends with exit code 1 where anything fails.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const run = (command: string, args: readonly string[], cwd: string): SpawnSyncReturns<string> =>
  spawnSync(command, args, { cwd, encoding: 'utf8', env: {}, timeout: 300_000 });

/** True where this process may start others without a network. */
const canUnshare = (): boolean => run('/usr/bin/unshare', ['--net', '/bin/true'], '/').status === 0;

function newestTarball(): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const name = `pagegate-${version}-linux-${process.arch}.tar.gz`;
  if (!readdirSync(join(ROOT, 'dist')).includes(name)) throw new Error(`dist/${name} is not there: run "make dist"`);
  return join(ROOT, 'dist', name);
}

/** What a server inside does: it starts, answers a request without a key with 401, and stops when it is told. */
const SERVE = `
const [home, config] = process.argv.slice(1);
const { spawn } = require('node:child_process');
const http = require('node:http');
const child = spawn('/bin/sh', [home + '/pagegate', 'serve', '--config', config, '--port', '18443', '--admin-port', '0'], { stdio: 'inherit' });
let left = 200;
const ask = () => http.get('http://127.0.0.1:18443/api/check?domain=github.com', (response) => {
  child.kill('SIGTERM');
  child.on('exit', (code) => { console.log('status ' + response.statusCode + ', exit ' + code); process.exit(response.statusCode === 401 && code === 0 ? 0 : 1); });
}).on('error', () => { left -= 1; if (left === 0) { child.kill('SIGKILL'); process.exit(1); } setTimeout(ask, 100); });
ask();
`;

/** Starts a server from the unpacked tarball and asks it; without a network, loopback is brought up first. */
function ask(home: string, config: string, offline: boolean): string {
  const node = join(home, 'node_modules/.bin/node');
  const up = offline ? 'ip link set lo up 2>/dev/null || ifconfig lo up; ' : '';
  const shell = ['/bin/sh', '-c', `${up}exec "$0" -e "$1" "$2" "$3"`, node, SERVE, home, config];
  const [command = '', ...args] = offline ? ['/usr/bin/unshare', '--net', ...shell] : shell;
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    timeout: 60_000,
  });
  if (status !== 0) throw new Error(`server: exit ${status}\n${stdout}\n${stderr}`);
  return stdout.trim().split('\n').at(-1)!;
}

/** Throws at the first step that fails; says on standard output what it did. */
export function tryTarball(tarball: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-try-'));
  const offline = canUnshare();
  const step = (title: string, command: string, args: readonly string[], cwd: string): string => {
    const { status, stdout, stderr, error } = run(command, args, cwd);
    if (status !== 0) throw new Error(`${title}: exit ${status} ${error?.message ?? ''}\n${stdout}\n${stderr}`);
    process.stdout.write(`ok: ${title}\n`);
    return stdout;
  };
  try {
    step('tarball checksum', '/usr/bin/sha256sum', ['-c', '--quiet', `${tarball}.sha256`], join(tarball, '..'));
    step('unpack', '/bin/tar', ['-xzf', tarball, '-C', folder], '/');
    const home = join(folder, readdirSync(folder)[0]!);
    step('file checksums', '/usr/bin/sha256sum', ['-c', '--quiet', 'SHA256SUMS'], home);
    const pagegate = (title: string, ...args: string[]): string =>
      offline
        ? step(title, '/usr/bin/unshare', ['--net', '/bin/sh', join(home, 'pagegate'), ...args], folder)
        : step(title, '/bin/sh', [join(home, 'pagegate'), ...args], folder);
    const version = pagegate('version', '--version').trim();
    const config = join(folder, 'config.json');
    const state = {
      state_dir: join(folder, 'state'),
      license: { trusted_keys: { try: join(folder, 'try.public.pem') } },
    };
    writeFileSync(config, JSON.stringify(state));
    pagegate('vendor key', 'license', 'keygen', '--out', join(folder, 'try'));
    const { dataset } = JSON.parse(readFileSync(join(home, 'data/sample/manifest.json'), 'utf8')) as {
      dataset: string;
    };
    const terms = ['--licensee', 'Try', '--dataset', dataset, '--refreshes-until', '2099-01-01'];
    const license = pagegate(
      'license',
      'license',
      'issue',
      '--key',
      join(folder, 'try.private.pem'),
      '--key-name',
      'try',
      ...terms,
    );
    writeFileSync(join(folder, 'license.json'), license);
    pagegate('license installed', 'license', 'install', join(folder, 'license.json'), '--config', config);
    pagegate('refresh from the sample drop', 'refresh', join(home, 'data/sample'), '--unsigned', '--config', config);
    pagegate('account', 'account', 'create', 'try', '--config', config);
    const report = JSON.parse(pagegate('doctor', 'doctor', '--config', config, '--json')) as {
      checks: { id: string }[];
    };
    const status = ask(home, config, offline);
    process.stdout.write(`ok: a server on loopback answered (${status})\n`);
    const how = offline ? 'without a network' : 'with the network of this machine (unshare is not allowed)';
    process.stdout.write(
      `pagegate ${version} ran from ${tarball} ${how}; doctor made ${report.checks.length} checks\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) tryTarball(process.argv[2] ?? newestTarball());
