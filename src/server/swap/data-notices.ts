/** What a worker reads beside what it serves, for health alone: the license's last day, and the drops that were rolled back. */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { isPem, readTrustedKeys } from '../../config/trusted-keys.ts';
import { loadLicense } from '../../license/installed.ts';
import { isOlder, readWithdrawn, type WithdrawnManifest, withdrawnFile } from '../../refresh/withdrawn-drops.ts';
import { fileIdentity } from '../data-loader.ts';
import type { LicenseStatus, WithdrawnStatus } from '../process/worker-status.ts';

/** What the files said when they were last read. */
export class DataNotices {
  license: LicenseStatus = { until: null, problem: null };
  readonly #config: Config;
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
    this.license = this.#readLicense(licenseFile);
    this.#marks = marksOf(indexDir);
    return true;
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

  #readLicense(file: string): LicenseStatus {
    try {
      const { entitlement } = loadLicense(file, readTrustedKeys(this.#config.license.trusted_keys));
      return { until: entitlement.kind === 'refreshes_until' ? entitlement.until : null, problem: null };
    } catch (error) {
      return { until: null, problem: error instanceof Error ? error.message : String(error) };
    }
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
