/** Files that a worker reads only to report on them in health: the license, and the list of drops that were rolled back. */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { isPem, readTrustedKeys } from '../../config/trusted-keys.ts';
import { messageOf, PagegateError } from '../../errors.ts';
import { loadLicense } from '../../license/installed.ts';
import { assertEntitled, type License, type LicensedData } from '../../license/license.ts';
import { isOlder, readWithdrawn, type WithdrawnManifest, withdrawnFile } from '../../refresh/withdrawn-drops.ts';
import { fileIdentity } from '../data-loader.ts';
import type { LicenseStatus, WithdrawnStatus } from '../process/worker-status.ts';

/** The content of these files when they were last read. */
export class DataNotices {
  readonly #config: Config;
  /** The installed license, or the reason why it cannot be used. */
  #license: License | string = '';
  #marks: readonly WithdrawnManifest[] = [];
  #identity: string | undefined;

  constructor(config: Config) {
    this.#config = config;
    this.look();
  }

  /** Reads the files again if one of them has changed. Returns whether one has. */
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

  /** Status of the installed license. An index that it does not cover stays in use, but the next start refuses it. */
  license(served: LicensedData | undefined): LicenseStatus {
    const license = this.#license;
    if (typeof license === 'string') return { until: null, problem: license };
    const { entitlement } = license;
    const until = entitlement.kind === 'refreshes_until' ? entitlement.until : null;
    return { until, problem: served === undefined ? null : refusal(license, served) };
  }

  /** The newest drop that was rolled back; null if newer data is served since. */
  withdrawn(served: Parameters<typeof isOlder>[0] | undefined): WithdrawnStatus | null {
    // An index file set by `index.path` does not come from the index store.
    if (this.#config.index.path !== null) return null;
    const newest = this.#marks
      .filter((mark) => served === undefined || isOlder(served, mark))
      .reduce<WithdrawnManifest | undefined>(
        (best, mark) => (best === undefined || isOlder(best, mark) ? mark : best),
        undefined,
      );
    if (newest === undefined) return null;
    return { generation: newest.generation, revision: newest.revision, withdrawn_at: newest.withdrawnAt };
  }

  #readLicense(file: string): License | string {
    try {
      return loadLicense(file, readTrustedKeys(this.#config.license.trusted_keys));
    } catch (error) {
      return messageOf(error);
    }
  }
}

/** Why a start would refuse the index in use; null if it would not. */
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

/** Reads the list of rolled-back drops. A damaged list counts as empty here; the next refresh reports the damage. */
function marksOf(store: string): WithdrawnManifest[] {
  try {
    return readWithdrawn(store);
  } catch {
    return [];
  }
}
