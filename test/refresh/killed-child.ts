/**
 * Runs one refresh with synthetic steps and kills itself with SIGKILL just before its n-th change of the file system. If N is never reached, prints
 * the number of changes. Usage: killed-child.ts STORE DROP N.
 */
import fs, { writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const [store = '', drop = '', n = '0'] = process.argv.slice(2);
let changes = 0;

function change(): void {
  changes += 1;
  if (changes === Number(n)) process.kill(process.pid, 'SIGKILL');
}

/** Counts each call of these functions as a change. */
function count<M extends object>(module: M, names: readonly (keyof M)[]): void {
  for (const name of names) {
    const original = module[name] as (...args: unknown[]) => unknown;
    const counted = (...args: unknown[]): unknown => {
      change();
      return original(...args);
    };
    Object.assign(module, { [name]: counted });
  }
}
count(promises, ['mkdir', 'open', 'rm', 'symlink']);
count(fs, ['fsyncSync', 'renameSync', 'writeFileSync']);
syncBuiltinESMExports();

const { refresh } = await import('../../src/refresh/refresh.ts');
const { fakeSteps } = await import('./support.ts');
const steps = fakeSteps({
  notifyServer: async () => {
    change();
    return { server: 'told' };
  },
});
await refresh(
  { drop, store, keep: 1, trustedKeys: [], unsigned: true },
  {
    ...steps,
    build: (request) => {
      writeFileSync(request.out, '{"half":');
      return steps.build(request);
    },
  },
);
process.stdout.write(`${changes}\n`);
