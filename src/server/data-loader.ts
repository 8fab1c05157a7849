/** Opens the data that a server serves: the index, with all checks before it is activated, and the policy. */
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
 * Opens and checks the current index.
 *
 * @throws PagegateError if it cannot be used. The file is then closed.
 */
export function openCurrentIndex(config: Config): Index {
  return openChecked(statePaths(config).indexFile, (index) => checkLicense(config, index));
}

/** File descriptor in a worker process under which it inherits the open index file, if it was given one. */
export const GIVEN_INDEX_FD = 4;

/**
 * Opens the index whose file this worker process inherited. The license is not checked, because the index was activated before. But the
 * file must be unchanged since then.
 *
 * @throws PagegateError if it cannot be used. It is then closed.
 * @throws PagegateError index_changed if the file was written to or truncated
 * @throws PagegateError index_refused if its mode has changed
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

/** Whether this program normalizes names with the same Unicode version as the program that built the index. */
export function hasSameUnicode({ info }: Index): boolean {
  return info.unicodeVersion === UNICODE_VERSION;
}

/**
 * Loads the configured policy.
 *
 * @throws PagegateError if it cannot be used
 */
export function openPolicy(config: Config): Policy {
  return runAtOnce(openPolicySteps(config));
}

/** {@link openPolicy} in steps, so that the caller can handle requests in between. @throws PagegateError if the policy cannot be used */
export function openPolicySteps({ policy: { profile, file } }: Config): Steps<Policy> {
  return loadPolicySteps({ profile: profile ?? undefined, file: file ?? undefined });
}

/** Reads an index into memory before it is served. Logs one line for each tenth. If reading fails, closes the index. */
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

/**
 * Returns the identity of a file: mode, device, inode, size and modification time. It changes when the file is replaced or written to, or
 * when its link points elsewhere. `-` if there is no file.
 */
export function fileIdentity(path: string | null): string {
  if (path === null) return '-';
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '-' : identityOf(stat);
}

/** {@link fileIdentity} for an open file. */
export function openFileIdentity(fd: number): string {
  return identityOf(fstatSync(fd, { bigint: true }));
}

const identityOf = (stat: BigIntStats): string => `${stat.mode}.${stat.dev}.${stat.ino}.${stat.size}.${stat.mtimeNs}`;

/** An identity without the mode. */
const contentOf = (identity: string): string => identity.slice(identity.indexOf('.'));
