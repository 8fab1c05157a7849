/** The license in the state directory. It is installed atomically. */
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { makeFolder } from '../platform/folders.ts';
import { readSmallFile, readSmallFileIfAny } from '../platform/small-file.ts';
import { type License, type TrustedKeys, verifyLicense } from './license.ts';

const FILE = { code: 'license_unreadable', sizeCode: 'bad_license', maxBytes: LIMITS.licenseBytes.value } as const;

/** Verifies a license. Error messages name its file, because there may be several. */
function verifyFile(file: string, bytes: Uint8Array, trusted: TrustedKeys): License {
  try {
    return verifyLicense(bytes, trusted);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code === 'bad_license_key') throw error;
    throw new PagegateError(error.code, `${file}: ${error.what}`, { ...error.details, file }, { cause: error });
  }
}

/** Reads and verifies a license file; `-` is standard input. @throws PagegateError license_unreadable, and what verifying throws. */
export function readLicenseFile(
  file: string,
  trusted: TrustedKeys,
): { readonly license: License; readonly bytes: Buffer } {
  const bytes = readSmallFile(file, { ...FILE, stdin: true });
  return { license: verifyFile(file === '-' ? 'standard input' : file, bytes, trusted), bytes };
}

/** Reads and verifies the installed license. @throws PagegateError license_missing, and what reading and verifying throw. */
export function loadLicense(file: string, trusted: TrustedKeys): License {
  const bytes = readSmallFileIfAny(file, FILE);
  if (bytes === undefined) throw new PagegateError('license_missing', `Looked for ${file}.`, { file });
  return verifyFile(file, bytes, trusted);
}

/**
 * Verifies a license file and installs it.
 *
 * @throws PagegateError state_unavailable, and what {@link readLicenseFile} throws. The license that was installed stays then.
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
