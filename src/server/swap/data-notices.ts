/** What a worker reads beside what it serves, for health alone: the license, and the drops that were rolled back. */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { isPem, readTrustedKeys } from '../../config/trusted-keys.ts';
import { messageOf, PagegateError } from '../../errors.ts';
import { loadLicense } from '../../license/installed.ts';
import { assertEntitled, type License, type LicensedData } from '../../license/license.ts';
import { isOlder, readWithdrawn, type WithdrawnManifest, withdrawnFile } from '../../refresh/withdrawn-drops.ts';
import { fileIdentity } from '../data-loader.ts';
import type { LicenseStatus, WithdrawnStatus } from '../process/worker-status.ts';

/** What the files said when they were last read. */
export class DataNotices {
  readonly #config: Config;
  /** The installed license, or why it cannot be used. */
  #license: License | string = '';
  #marks: readonly WithdrawnManifest[] = [];
  #identity: string | undefined;

  constructor(config: Config) {
    this.#config = config;
    this.look();
  }

  /** Reads what has changed on the disk; returns whether anything has. */
  look(): boolean {
    const { licenseFile, indexDir } = statePaths(this.#config);
    const keyFiles = Object.values(this.#config.license.trusted_keys).filter((key) => !isPem(key));
    const identity = [licenseFile, ...keyFiles, withdrawnFile(indexDir)].map(identityOf).join(' ');
    if (identity === this.#identity) return false;
    this.#identity = identity;
    this.#license = this.#readLicense(licenseFile);
    this.#marks = marksOf(indexDir);
    return true;
  }

  /** The installed license. What is served goes on without one that covers it, and is refused by the next start. */
  license(served: LicensedData | undefined): LicenseStatus {
    const license = this.#license;
    if (typeof license === 'string') return { until: null, problem: license };
    const { entitlement } = license;
    const until = entitlement.kind === 'refreshes_until' ? entitlement.until : null;
    return { until, problem: served === undefined ? null : refusal(license, served) };
  }

  /** The newest drop that was rolled back, where nothing newer is served since. */
  withdrawn(served: Parameters<typeof isOlder>[0] | undefined): WithdrawnStatus | null {
    // A file that the configuration names is not of the store.
    if (this.#config.index.path !== null) return null;
    const mark = this.#marks
      .filter((one) => served === undefined || isOlder(served, one))
      .reduce<WithdrawnManifest | undefined>(
        (newest, one) => (newest === undefined || isOlder(newest, one) ? one : newest),
        undefined,
      );
    if (mark === undefined) return null;
    return { generation: mark.generation, revision: mark.revision, withdrawn_at: mark.withdrawnAt };
  }

  #readLicense(file: string): License | string {
    try {
      return loadLicense(file, readTrustedKeys(this.#config.license.trusted_keys));
    } catch (error) {
      return messageOf(error);
    }
  }
}

/** Why a start would refuse what is served; null where it would not. */
function refusal(license: License, served: LicensedData): string | null {
  try {
    assertEntitled(license, served);
    return null;
  } catch (error) {
    return error instanceof PagegateError ? error.what : messageOf(error);
  }
}

function identityOf(file: string): string {
  try {
    return fileIdentity(file);
  } catch {
    return 'unreadable';
  }
}

/** A list that is damaged is the next refresh's trouble, which says so. */
function marksOf(store: string): WithdrawnManifest[] {
  try {
    return readWithdrawn(store);
  } catch {
    return [];
  }
}
