/** Whether an API key is accepted. */
import type { ApiKeyRecord } from './store/records.ts';

/**
 * Whether a key is neither revoked nor expired.
 *
 * @param latestSeconds the latest time ever seen, not the clock's time: an expired key stays expired when the clock is set back.
 */
export function isKeyCurrent(key: ApiKeyRecord, latestSeconds: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || latestSeconds < key.expiresAt);
}

/** Whether a key is neither revoked nor has an expiry time: the key that a rotation would replace. */
export function isLastingKey({ revokedAt, expiresAt }: ApiKeyRecord): boolean {
  return revokedAt === null && expiresAt === null;
}
