/** Whether an API key is accepted, now and later. */
import type { ApiKeyRecord } from './store/records.ts';

/**
 * Whether a key still opens its account.
 *
 * @param latestSeconds the latest moment ever seen, not the clock's: what has expired stays so when the clock is set back.
 */
export function isKeyCurrent(key: ApiKeyRecord, latestSeconds: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || latestSeconds < key.expiresAt);
}

/** Whether a key is the one that a rotation would replace: it has no end. */
export function isLastingKey({ revokedAt, expiresAt }: ApiKeyRecord): boolean {
  return revokedAt === null && expiresAt === null;
}
