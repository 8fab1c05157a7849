/** Passwords and other secrets of the console: only hashes of them are kept. */
import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';

/** scrypt's cost as OWASP's cheat sheet on password storage has it for 32 MiB: N = 2^15, r = 8, p = 3. */
const COST = { log2: 15, blockSize: 8, parallel: 3 } as const;
const MEMORY_MAX_BYTES = 64 * 1024 * 1024;
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const PASSWORD_MAX_LENGTH = LIMITS.consolePasswordCharacters.value;
/** Passwords that are hashed at a time: each takes 32 MiB and a thread. */
const PARALLEL_MAX = LIMITS.consoleHashes.value;
/** Sign-ins that may wait for a free thread; more are turned away. */
const WAITING_MAX = 16;

let running = 0;
const waiting: (() => void)[] = [];

/** @throws PagegateError console_busy when too many wait already */
async function derive(password: string, salt: Buffer): Promise<Buffer> {
  if (running >= PARALLEL_MAX) {
    if (waiting.length >= WAITING_MAX) throw new PagegateError('console_busy');
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else running += 1;
  try {
    const { log2, blockSize, parallel } = COST;
    const options = { N: 2 ** log2, r: blockSize, p: parallel, maxmem: MEMORY_MAX_BYTES };
    return await new Promise<Buffer>((resolve, reject) => {
      scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, key) =>
        error === null ? resolve(key) : reject(error),
      );
    });
  } finally {
    // Whoever waits takes the place over.
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/**
 * The form in which a password is kept: `scrypt$15$8$3$salt$hash`.
 *
 * @throws PagegateError console_busy
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const { log2, blockSize, parallel } = COST;
  const parts = [log2, blockSize, parallel, salt.toString('base64url')];
  return `scrypt$${parts.join('$')}$${(await derive(password, salt)).toString('base64url')}`;
}

/** Compared where there is no such user, so that the answer takes as long. */
const NOBODY = `scrypt$15$8$3$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Whether the password is the one that was kept; null where there is none. It takes as long either way. @throws PagegateError console_busy */
export async function isPassword(password: string, kept: string | null): Promise<boolean> {
  const [, , , , salt = '', key = ''] = (kept ?? NOBODY).split('$');
  const derived = await derive(password.slice(0, PASSWORD_MAX_LENGTH), Buffer.from(salt, 'base64url'));
  const expected = Buffer.from(key, 'base64url');
  return kept !== null && derived.length === expected.length && timingSafeEqual(derived, expected);
}

/** A secret of 256 bits for a link or a session. */
export const createToken = (): string => randomBytes(32).toString('base64url');

/** What is kept of a token. */
export const hashToken = (token: string): string => hash('sha256', token, 'base64url');
