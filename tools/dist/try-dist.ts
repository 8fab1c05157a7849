/**
 * Tries a tarball as an offline host would: unpacks it into an empty folder, checks its checksums, and runs it with an empty
 * environment and, where the machine allows it, without a network. Ends with exit code 1 where anything fails.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = new URL('../../', import.meta.url).pathname;

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

function main(tarball: string): void {
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
    const state = join(folder, 'state');
    const version = pagegate('version', '--version').trim();
    pagegate(
      'refresh from the sample drop',
      'refresh',
      join(home, 'data/sample'),
      '--unsigned',
      '--unlicensed',
      '--state-dir',
      state,
      '--json',
    );
    pagegate('look-up', 'lookup', 'github.com', '--state-dir', state, '--json');
    const report = JSON.parse(pagegate('doctor', 'doctor', '--state-dir', state, '--json')) as {
      checks: { id: string }[];
    };
    const how = offline ? 'without a network' : 'with the network of this machine (unshare is not allowed)';
    process.stdout.write(
      `pagegate ${version} ran from ${tarball} ${how}; doctor made ${report.checks.length} checks\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

main(process.argv[2] ?? newestTarball());
