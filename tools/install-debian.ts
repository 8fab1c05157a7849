/** Installs Debian packages that tools need. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./install-debian.sh', import.meta.url));

/**
 * Installs the package of a program if the program is missing and this process is root. The output goes to standard error.
 *
 * @param program a path, or a pattern; one match is enough.
 * @throws Error that says what to do, if the program is missing afterwards
 */
export function requireDebian(program: string, debianPackage: string): void {
  const { status } = spawnSync(SCRIPT, [`${program}=${debianPackage}`], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`${program} is needed: apt-get install ${debianPackage}`);
}
