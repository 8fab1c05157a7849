/** Certificates and keys that a test replaces. */
import { renameSync, writeFileSync } from 'node:fs';

/**
 * Puts a certificate or key into place as another file: two of one size, written within one tick of the file system's clock, could not
 * be distinguished by their times.
 */
export function putPem(path: string, pem: string): void {
  writeFileSync(`${path}.new`, pem, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
