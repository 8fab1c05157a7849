/** Opens what a server serves: the index with everything that must hold before it is activated, and the policy. */
import { type BigIntStats, fstatSync, statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { readTrustedKeys } from '../config/trusted-keys.ts';
import { UNICODE_VERSION } from '../domain/host-key.ts';
import { PagegateError } from '../errors.ts';
import { type Index, openIndex } from '../index/read.ts';
import { loadLicense } from '../license/installed.ts';
import { assertEntitled } from '../license/license.ts';
import { loadPolicySteps } from '../policy/load.ts';
import type { Policy } from '../policy/policy.ts';
import { shareOf } from '../progress.ts';
import { isOwnVocabulary, VOCABULARY_NAME, VOCABULARY_VERSION } from '../record/vocabulary.ts';
import { runAtOnce, type Steps } from '../steps.ts';
import type { Log } from './log.ts';

/**
 * Opens and checks the index that is current.
 *
 * @throws what is wrong with it; nothing stays open then
 */
export function openCurrentIndex(config: Config): Index {
  return openChecked(statePaths(config).indexFile, (index) => checkLicense(config, index));
}

/** Where a worker process finds the open file of the index that is served, if it was given one. */
export const GIVEN_INDEX_FD = 4;

/**
 * Opens the index that this worker process was given. It was activated already, so no license is asked; but it must be the file
 * that was activated, unchanged.
 *
 * @throws what is wrong with it; nothing stays open then
 * @throws PagegateError index_changed where the file was written to or cut
 * @throws PagegateError index_refused where it has another mode
 */
export function openGivenIndex(identity: string): Index {
  const path = `/proc/self/fd/${GIVEN_INDEX_FD}`;
  const now = openFileIdentity(GIVEN_INDEX_FD);
  if (contentOf(now) !== contentOf(identity))
    throw new PagegateError('index_changed', 'It was written to while it was served.', { path });
  if (now !== identity)
    throw new PagegateError('index_refused', 'The file of the index that is served was changed.', { path });
  return openChecked(path);
}

function openChecked(path: string, check: (index: Index) => void = () => {}): Index {
  const index = openIndex(path);
  try {
    checkVocabulary(index, path);
    check(index);
    return index;
  } catch (error) {
    index.close();
    throw error;
  }
}

function checkVocabulary({ info }: Index, path: string): void {
  if (isOwnVocabulary(info.vocabulary)) return;
  const { name, version } = info.vocabulary;
  throw new PagegateError(
    'index_refused',
    `${path} was built with page-type vocabulary ${name} ${version}, this program has ${VOCABULARY_NAME} ${VOCABULARY_VERSION}; build it again.`,
    { path, expected: VOCABULARY_VERSION, got: version },
  );
}

function checkLicense(config: Config, { info }: Index): void {
  const license = loadLicense(statePaths(config).licenseFile, readTrustedKeys(config.license.trusted_keys));
  assertEntitled(license, { dataset: info.dataset, manifestSha256: info.manifestSha256, created: info.created });
}

/** Whether the normalizer of this program agrees with the one that the index was built with. */
export function hasSameUnicode({ info }: Index): boolean {
  return info.unicodeVersion === UNICODE_VERSION;
}

/**
 * Loads the policy that the configuration names.
 *
 * @throws what is wrong with it
 */
export function openPolicy(config: Config): Policy {
  return runAtOnce(openPolicySteps(config));
}

/** The steps of {@link openPolicy}. @throws what is wrong with it */
export function openPolicySteps({ policy: { profile, file } }: Config): Steps<Policy> {
  return loadPolicySteps({ profile: profile ?? undefined, file: file ?? undefined });
}

/** Reads an index into memory before it is served; a line of the log for each tenth. A failure closes the index. */
export async function warmIndex(index: Index, log: Log): Promise<void> {
  let tenths = 0;
  try {
    await index.warm((done, total) => {
      const now = Math.floor(shareOf(done, total) * 10);
      if (now > tenths) log('index_warming', { generation: index.info.generation, percent: now * 10 });
      tenths = now;
    });
  } catch (error) {
    index.close();
    throw error;
  }
}

/** What a file is now; changes when it is replaced, its link points elsewhere or its mode changes. `-` where there is none. */
export function fileIdentity(path: string | null): string {
  if (path === null) return '-';
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '-' : identityOf(stat);
}

/** The same of an open file. */
export function openFileIdentity(fd: number): string {
  return identityOf(fstatSync(fd, { bigint: true }));
}

const identityOf = (stat: BigIntStats): string => `${stat.mode}.${stat.dev}.${stat.ino}.${stat.size}.${stat.mtimeNs}`;

/** An identity without the mode. */
const contentOf = (identity: string): string => identity.slice(identity.indexOf('.'));
