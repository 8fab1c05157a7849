/** The license in the state directory: installed whole or not at all. */
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { makeFolder } from '../platform/folders.ts';
import { readSmallFile, readSmallFileIfAny } from '../platform/small-file.ts';
import { type License, type TrustedKeys, verifyLicense } from './license.ts';

const FILE = { code: 'license_unreadable', sizeCode: 'bad_license', maxBytes: LIMITS.licenseBytes.value } as const;

/** What is wrong with a license names its file: several may be at hand. */
function verified(file: string, bytes: Uint8Array, trusted: TrustedKeys): License {
  try {
    return verifyLicense(bytes, trusted);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code === 'bad_license_key') throw error;
    throw new PagegateError(error.code, `${file}: ${error.what}`, { ...error.details, file }, { cause: error });
  }
}

/** A license file with its bytes, verified; `-` is standard input. @throws PagegateError license_unreadable, and what verifying throws. */
export function readLicenseFile(
  file: string,
  trusted: TrustedKeys,
): { readonly license: License; readonly bytes: Buffer } {
  const bytes = readSmallFile(file, { ...FILE, stdin: true });
  return { license: verified(file === '-' ? 'standard input' : file, bytes, trusted), bytes };
}

/** The installed license, verified. @throws PagegateError license_missing, and what reading and verifying throw. */
export function loadLicense(file: string, trusted: TrustedKeys): License {
  const bytes = readSmallFileIfAny(file, FILE);
  if (bytes === undefined) throw new PagegateError('license_missing', `Looked for ${file}.`, { file });
  return verified(file, bytes, trusted);
}

/**
 * Verifies a license file and puts it into place.
 *
 * @throws PagegateError state_unavailable; then what was installed stays
 */
export function installLicense(target: string, source: string, trusted: TrustedKeys): License {
  const { license, bytes } = readLicenseFile(source, trusted);
  try {
    makeFolder(dirname(target), 0o750);
    replaceDurable(target, bytes, 0o644);
  } catch (error) {
    throw fromSystem('state_unavailable', target, error);
  }
  return license;
}
