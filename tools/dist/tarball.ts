/** Tarballs whose bytes follow from their content alone. Needs GNU tar. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Seconds since 1970 that every file of a tarball carries: those of the last commit, where there is one. */
export function sourceDate(): string {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given !== undefined && /^[0-9]+$/.test(given)) return given;
  try {
    return execFileSync('git', ['-C', ROOT, 'log', '-1', '--format=%ct'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return '0';
  }
}

/** Packs a folder of `parent` so that the same content gives the same bytes. */
export function pack(parent: string, name: string, tarball: string): void {
  const fixed = [
    '--sort=name',
    `--mtime=@${sourceDate()}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--format=gnu',
  ];
  execFileSync('tar', ['-C', parent, ...fixed, '-I', 'gzip -n -6', '-cf', tarball, name], { stdio: 'inherit' });
}
