/** The license in the state directory: installed whole or not at all. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { PagegateError } from '../errors.ts';
import { replaceDurable } from '../platform/durable.ts';
import { type License, MAX_LICENSE_SIZE_BYTES, type TrustedKeys, verifyLicense } from './license.ts';

/** Reads a file that claims to be a license. @throws PagegateError license_missing, bad_license */
export function readLicenseFile(file: string): Buffer {
  try {
    if (statSync(file).size > MAX_LICENSE_SIZE_BYTES) {
      throw new PagegateError('bad_license', `${file} has more than ${MAX_LICENSE_SIZE_BYTES} bytes.`);
    }
    return readFileSync(file);
  } catch (cause) {
    if (cause instanceof PagegateError) throw cause;
    const code = (cause as NodeJS.ErrnoException).code;
    throw new PagegateError(
      code === 'ENOENT' ? 'license_missing' : 'bad_license',
      `${file}: ${code}.`,
      { file },
      { cause },
    );
  }
}

/** The installed license, verified. @throws PagegateError license_missing, bad_license, license_untrusted, bad_license_key */
export function loadLicense(file: string, trusted: TrustedKeys): License {
  return verifyLicense(readLicenseFile(file), trusted);
}

/** Verifies a license file and puts it into place. */
export function installLicense(target: string, source: string, trusted: TrustedKeys): License {
  const bytes = readLicenseFile(source);
  const license = verifyLicense(bytes, trusted);
  mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
  replaceDurable(target, bytes, 0o644);
  return license;
}
