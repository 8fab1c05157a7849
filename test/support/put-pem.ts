/** Replaces certificates and keys in tests. */
import { renameSync, writeFileSync } from 'node:fs';

/**
 * Replaces a certificate or key by a new file, with another inode. If a file of the same size were written in place within one tick of the file
 * system's clock, its times would not show the change.
 */
export function putPem(path: string, pem: string): void {
  writeFileSync(`${path}.new`, pem, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
