/** Checks who may change or read what the program keeps. Whoever can write to a folder can replace every file in it. */
import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { type Check, type CheckOutcome, failed, ok, problem, warning } from './check.ts';

const GROUP_WRITE = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/** A path, and what only its owner (and group) may do with it. */
interface Guarded {
  readonly path: string;
  /** Mode bits that must not be set. */
  readonly forbidden: number;
  /** What others could do if they are set. */
  readonly risk: string;
  /** The argument of `chmod` that clears them. */
  readonly bits: string;
  /** Whether a user other than root and the server's may own it: files that administrators place elsewhere. */
  readonly isForeign?: boolean;
}

/** Returns the mode in the octal form of `chmod`. */
function modeOf(stats: Stats): string {
  return (stats.mode & 0o7777).toString(8).padStart(4, '0');
}

const closed = (path: string): Guarded => ({
  path,
  forbidden: 0o077,
  risk: 'Other users can read or change it',
  bits: 'go=',
});

const unwritable = (path: string, what: string): Guarded => ({
  path,
  forbidden: OTHERS_WRITE,
  risk: `Any user can replace ${what}`,
  bits: 'o-w',
});

const foreign = (path: string, what: string): Guarded => ({ ...unwritable(path, what), isForeign: true });

/** Resolves a path; undefined if nothing is there, or if this process may not look. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Returns all paths that determine what is served, to whom, and how it is judged. Missing ones are skipped later. */
function guardedPaths(config: Config): Guarded[] {
  const { indexDir, indexFile, ledgerFile, ledgerKeyFile, licenseFile, runDir, logDir } = statePaths(config);
  const real = realPathOf(indexFile) ?? indexFile;
  const index = [indexDir, join(indexDir, 'generations'), dirname(real), real];
  const trusted = [config.license.trusted_keys, config.refresh.trusted_keys].flatMap((keys) => Object.values(keys));
  return [
    unwritable(config.state_dir, 'the served data'),
    ...index.map((path) => unwritable(path, 'the index')),
    ...[dirname(licenseFile), licenseFile].map((path) => unwritable(path, 'the license')),
    ...trusted.filter((key) => key.startsWith('/')).map((path) => foreign(path, 'the trusted key')),
    ...(config.policy.file === null ? [] : [foreign(config.policy.file, 'the policy')]),
    unwritable(join(config.state_dir, 'plans.json'), 'the plans'),
    unwritable(dirname(ledgerFile), 'the ledger'),
    { path: ledgerFile, forbidden: 0o027, risk: 'Other users can read or change it', bits: 'g-w,o=' },
    unwritable(dirname(ledgerKeyFile), 'the encryption key of the API keys'),
    closed(ledgerKeyFile),
    unwritable(runDir, 'the socket for commands'),
    unwritable(logDir, 'the decision log'),
  ];
}

function judge(
  { path, forbidden, risk, bits, isForeign = false }: Guarded,
  owners: ReadonlySet<number>,
): CheckOutcome[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  const findings: CheckOutcome[] = [];
  const found = `${path} has mode ${modeOf(stats)}`;
  if ((stats.mode & forbidden) !== 0) findings.push(problem(found, `${risk}: chmod ${bits} ${path}`));
  else if ((stats.mode & GROUP_WRITE) !== 0 && forbidden === OTHERS_WRITE) {
    findings.push(warning(found, `Its whole group can change it; if that is not intended: chmod g-w ${path}`));
  }
  if (!isForeign && !owners.has(stats.uid)) {
    const advice = `That user can change it, whatever its mode: give it to root or to the server's user (chown).`;
    findings.push(problem(`${path} belongs to user ${stats.uid}`, advice));
  }
  return findings;
}

/** Checks the folders above the state directory: whoever may rename in them can replace it. */
function judgeParents(stateDir: string): CheckOutcome[] {
  const findings: CheckOutcome[] = [];
  for (let at = dirname(stateDir); ; at = dirname(at)) {
    const stats = statSync(at);
    if ((stats.mode & OTHERS_WRITE) !== 0 && (stats.mode & STICKY) === 0) {
      const advice = `Any user can replace ${stateDir} by another folder: chmod o-w ${at}`;
      findings.push(problem(`${at} has mode ${modeOf(stats)}`, advice));
    }
    if (at === dirname(at)) return findings;
  }
}

/** Finds files of root in a state directory of the server's user. Commands that ran as root left them; the server cannot change or even read them. */
function judgeRootFiles(config: Config, owner: number): CheckOutcome[] {
  if (owner === 0) return [];
  const { consoleFile, logDir } = statePaths(config);
  const paths = new Set([...guardedPaths(config).map(({ path }) => path), dirname(consoleFile), logDir]);
  const ofRoot = [...paths].filter((path) => path.startsWith(`${config.state_dir}/`) && isOfRoot(path));
  if (ofRoot.length === 0) return [];
  const found = `${config.state_dir} belongs to user ${owner}, but root owns ${ofRoot.join(', ')}`;
  const advice = `Commands were run as root, and the server of that user cannot change the files they created: chown -R --reference=${config.state_dir} ${config.state_dir}`;
  return [problem(found, advice)];
}

/** Whether root owns a path. False below a folder that this process may not enter; that folder itself is reported. */
function isOfRoot(path: string): boolean {
  try {
    return statSync(path).uid === 0;
  } catch {
    return false;
  }
}

function sameFolder(left: string, right: string): boolean {
  const real = realPathOf(left);
  return real !== undefined && real === realPathOf(right);
}

/** Returns why the state directory cannot be used; undefined if it can. */
async function unusable(stateDir: string, stats: Stats): Promise<CheckOutcome | undefined> {
  if (!stats.isDirectory()) return problem(`${stateDir} is not a folder`, 'Correct state_dir, or move the file away.');
  const { folderAccessError } = await import('../platform/libc.ts');
  const refusal = folderAccessError(stateDir);
  if (refusal === undefined) return undefined;
  if (refusal === 'EROFS')
    return problem(
      `${stateDir} is on a file system that is mounted read-only`,
      'Check the kernel log, and mount it writable.',
    );
  const found = `this user cannot use ${stateDir}, which belongs to user ${stats.uid} and has mode ${modeOf(stats)}`;
  return problem(
    found,
    'Run pagegate as its owner: runuser -u NAME -- pagegate doctor. The checks below are incomplete.',
  );
}

/** Finds files in places where the program creates a folder. */
function judgeKinds(config: Config): CheckOutcome[] {
  const { indexDir, ledgerFile, ledgerKeyFile, licenseFile, runDir, logDir, consoleFile } = statePaths(config);
  const holders = [ledgerFile, ledgerKeyFile, licenseFile, consoleFile].map((file) => dirname(file));
  return [indexDir, ...holders, runDir, logDir]
    .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false)
    .map((path) => problem(`${path} is not a folder`, 'The program needs a folder there: move the file away.'));
}

function attempt(task: () => CheckOutcome[]): CheckOutcome[] {
  try {
    return task();
  } catch (error) {
    return [failed(error)];
  }
}

async function checkPermissions(config: Config): Promise<CheckOutcome | readonly CheckOutcome[]> {
  const { state_dir } = config;
  const stats = statSync(state_dir, { throwIfNoEntry: false });
  if (stats === undefined) {
    return warning(`${state_dir} does not exist`, 'The first refresh creates it; check state_dir if it should exist.');
  }
  const useless = await unusable(state_dir, stats);
  if (useless !== undefined) return useless;
  // If this is root, it checks on behalf of the server's user, the owner of the state directory.
  const user = process.geteuid?.() ?? 0;
  const owners = new Set([0, user === 0 ? stats.uid : user]);
  const { ledgerKeyFile, ledgerFile } = statePaths(config);
  const findings = [
    ...attempt(() => judgeParents(realpathSync(state_dir))),
    ...attempt(() => judgeKinds(config)),
    ...guardedPaths(config).flatMap((one) => attempt(() => judge(one, owners))),
    ...attempt(() => judgeRootFiles(config, stats.uid)),
  ];
  if (sameFolder(dirname(ledgerKeyFile), dirname(ledgerFile))) {
    const advice = 'A backup of that folder contains both: make "keys" in the state directory a folder of its own.';
    findings.push(warning('the encryption key of the API keys is in the folder of the ledger', advice));
  }
  return findings.length > 0 ? findings : ok(`${state_dir} has mode ${modeOf(stats)}`);
}

export const PERMISSION_CHECKS: readonly Check[] = [{ id: 'permissions', run: checkPermissions }];
