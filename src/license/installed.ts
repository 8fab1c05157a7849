/** The license in the state directory: installed whole or not at all. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { replaceDurable } from '../platform/durable.ts';
import { type License, MAX_LICENSE_SIZE_BYTES, type TrustedKeys, verifyLicense } from './license.ts';

/** Reads a file that claims to be a license. @throws PagegateError license_unreadable, bad_license */
export function readLicenseFile(file: string): Buffer {
  try {
    if (statSync(file).size > MAX_LICENSE_SIZE_BYTES) {
      throw new PagegateError('bad_license', `${file} has more than ${MAX_LICENSE_SIZE_BYTES} bytes.`);
    }
    return readFileSync(file);
  } catch (error) {
    throw fromSystem('license_unreadable', file, error);
  }
}

/** The installed license, verified. @throws PagegateError license_missing, and what reading and verifying throw. */
export function loadLicense(file: string, trusted: TrustedKeys): License {
  let bytes: Buffer;
  try {
    bytes = readLicenseFile(file);
  } catch (error) {
    const isMissing = error instanceof PagegateError && error.details['reason'] === 'ENOENT';
    throw isMissing ? new PagegateError('license_missing', `Looked for ${file}.`, { file }, { cause: error }) : error;
  }
  return verifyLicense(bytes, trusted);
}

/** Verifies a license file and puts it into place. Throws also `state_unavailable`; then what was installed stays. */
export function installLicense(target: string, source: string, trusted: TrustedKeys): License {
  const bytes = readLicenseFile(source);
  const license = verifyLicense(bytes, trusted);
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
    replaceDurable(target, bytes, 0o644);
  } catch (error) {
    throw fromSystem('state_unavailable', target, error);
  }
  return license;
}
