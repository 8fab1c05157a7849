/** How many passwords are hashed at a time, and how many may wait: each hash takes 32 MiB. */
import type { BinaryLike, ScryptOptions } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { hashPassword } from '../../src/console/store/passwords.ts';
import type { PagegateError } from '../../src/errors.ts';
import { LIMITS } from '../../src/limits.ts';

/** Hashes that have started. Calling an entry finishes that hash. */
const begun = vi.hoisted<(() => void)[]>(() => []);
type Done = (error: Error | null, key: Buffer) => void;
vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof import('node:crypto')>()),
  scrypt: (_password: BinaryLike, _salt: BinaryLike, size: number, _options: ScryptOptions, done: Done) => {
    begun.push(() => done(null, Buffer.alloc(size)));
  },
}));

it('a limited number of passwords is hashed at a time, some wait, and more are refused', async () => {
  const most = LIMITS.consoleHashes.value;
  const password = 'a password that is long enough';
  const taken = Array.from({ length: most + 16 }, () => hashPassword(password));
  const further = hashPassword(password).catch(({ code }: PagegateError) => code);
  expect(await Promise.race([further, nextTurn('it waits')])).toBe('console_busy');
  expect(begun).toHaveLength(most);
  for (let ended = 0; ended < taken.length; ended += 1) {
    begun[ended]!();
    await expect.poll(() => begun.length).toBe(Math.min(taken.length, most + ended + 1));
  }
  await Promise.all(taken);
  const last = hashPassword(password);
  await expect.poll(() => begun.length).toBe(taken.length + 1);
  begun.at(-1)!();
  expect(await last).toMatch(/^scrypt\$15\$8\$3\$/);
});
