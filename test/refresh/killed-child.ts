/**
 * Runs one refresh with made-up steps and ends itself with SIGKILL just before its n-th change of the file system.
 * Usage: killed-child.ts STORE DROP N. Prints how many changes there were where N was never reached.
 */

import { createHash } from 'node:crypto';
import fs, { readFileSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const [store = '', drop = '', n = '0'] = process.argv.slice(2);
let changes = 0;

function change(): void {
  changes += 1;
  if (changes === Number(n)) process.kill(process.pid, 'SIGKILL');
}

/** Each call of one of these functions is a change. */
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
const identify = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
await refresh(
  { drop, store, keep: 1, trustedKeys: [], unsigned: true },
  {
    build: async ({ out, generation }) => {
      const manifest = readFileSync(`${drop}/manifest.json`);
      const { dataset, revision } = JSON.parse(manifest.toString());
      const manifestSha256 = createHash('sha256').update(manifest).digest('hex');
      writeFileSync(out, '{"half":');
      writeFileSync(
        out,
        JSON.stringify({ dataset, revision, generation, manifestSha256, recordCount: 2, sizeBytes: 1 }),
      );
    },
    identify,
    verify: async (file) => identify(file),
    assertEntitled: () => {},
    notifyServer: async () => {
      change();
      return { server: 'told' };
    },
  },
);
process.stdout.write(`${changes}\n`);
