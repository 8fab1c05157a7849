/** Debian's packages, for programs that need them. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./install-debian.sh', import.meta.url));

/**
 * Installs the package of a program that is missing, when root. What that says goes to the error output.
 *
 * @param program a path, or a pattern of which one match is enough.
 * @throws Error that says what to do, where the program is missing afterwards
 */
export function requireDebian(program: string, debianPackage: string): void {
  const { status } = spawnSync(SCRIPT, [`${program}=${debianPackage}`], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`${program} is needed: apt-get install ${debianPackage}`);
}
