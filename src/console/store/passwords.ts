/** Hashing of the console's passwords and tokens. Only hashes are stored. */
import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';

/** The scrypt parameters for 32 MiB in OWASP's Password Storage Cheat Sheet: N = 2^15, r = 8, p = 3. */
const COST = { log2: 15, blockSize: 8, parallel: 3 } as const;
const MEMORY_MAX_BYTES = 64 * 1024 * 1024;
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const PASSWORD_MAX_LENGTH = LIMITS.consolePasswordCharacters.value;
/** Maximum number of passwords that are hashed at a time: each takes 32 MiB and a thread. */
const PARALLEL_MAX = LIMITS.consoleHashes.value;
/** Maximum number of hashes that wait for a free thread; further ones are refused. */
const WAITING_MAX = 16;

let running = 0;
const waiting: (() => void)[] = [];

/** @throws PagegateError console_busy if too many wait already */
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
    // The next one in the queue takes over this slot, so the count stays.
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/**
 * Hashes a password into its stored form: `scrypt$15$8$3$salt$hash`.
 *
 * @throws PagegateError console_busy
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const { log2, blockSize, parallel } = COST;
  const parts = [log2, blockSize, parallel, salt.toString('base64url')];
  return `scrypt$${parts.join('$')}$${(await derive(password, salt)).toString('base64url')}`;
}

/** Compared if there is no such user or no password, so that the answer takes as long. */
const NOBODY = `scrypt$15$8$3$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Whether a password matches its stored form, which is null if there is none. It always takes the same time. @throws PagegateError console_busy */
export async function isPassword(password: string, kept: string | null): Promise<boolean> {
  const [, , , , salt = '', key = ''] = (kept ?? NOBODY).split('$');
  const derived = await derive(password.slice(0, PASSWORD_MAX_LENGTH), Buffer.from(salt, 'base64url'));
  const expected = Buffer.from(key, 'base64url');
  return kept !== null && derived.length === expected.length && timingSafeEqual(derived, expected);
}

/** Returns a random secret of 256 bits for a link or a session. */
export const createToken = (): string => randomBytes(32).toString('base64url');

/** Returns the hash under which a token is stored. */
export const hashToken = (token: string): string => hash('sha256', token, 'base64url');
