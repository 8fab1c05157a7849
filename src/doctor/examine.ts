/** Runs all checks of what the program depends on. They change nothing. */

import { readFileSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';
import { unreadVariables } from '../config/environment.ts';
import { actAsUser } from '../platform/user.ts';
import { type CheckOutcome, type CheckResult, failed, problem, runChecks, warning } from './check.ts';
import { HOST_CHECKS } from './host-checks.ts';
import { STATE_CHECKS } from './installation-checks.ts';

/**
 * Runs all checks for a configuration that could be read. Root runs them with the rights of the owner of the state directory: the
 * server runs as that user, and what root may read means nothing for it.
 *
 * @param readAgain reads the configuration again, with those rights
 */
export async function examineAsServer(config: Config, readAgain: () => Promise<Config>): Promise<CheckResult[]> {
  const owner = otherOwner(config.state_dir);
  if (owner === undefined) return examine(config);
  const giveBack = takeRights(owner);
  if (typeof giveBack !== 'function') return [{ id: 'configuration', ...giveBack }, ...(await examine(config))];
  const how = `, checked with the rights of user ${owner.uid}`;
  try {
    return await examine(await readAgain(), how);
  } catch (error) {
    const outcome = failed(error);
    return [{ id: 'configuration', ...outcome, found: outcome.found + how }];
  } finally {
    giveBack();
  }
}

/** Takes the rights of a user and returns a function that gives them back; or returns a finding why root keeps its own. */
function takeRights({ uid, gid }: Stats): (() => void) | CheckOutcome {
  let giveBack: () => void;
  try {
    giveBack = actAsUser(uid, gid);
  } catch {
    const found = `this command runs as root, but cannot take the rights of user ${uid}`;
    return warning(found, 'Run it as that user: runuser -u NAME -- pagegate doctor. The checks below are incomplete.');
  }
  try {
    // The checks import further modules, so the user must be able to read the program.
    readFileSync(import.meta.filename);
    return giveBack;
  } catch {
    giveBack();
    const found = `user ${uid}, who owns the state directory, cannot read the program in ${PROGRAM}`;
    return problem(
      found,
      'A server of that user does not start: move the program, or let all users read its folder. The checks below are incomplete.',
    );
  }
}

const PROGRAM = dirname(dirname(import.meta.dirname));

/** The owner of the state directory, if this process is root and the owner is not. */
function otherOwner(stateDir: string): Stats | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  try {
    const stats = statSync(stateDir);
    return stats.uid === 0 ? undefined : stats;
  } catch {
    // The checks report that it is missing.
    return undefined;
  }
}

/** Runs all checks for a configuration that could be read; `how` is appended to the finding about it. */
export async function examine(config: Config, how = ''): Promise<CheckResult[]> {
  const configuration: CheckResult[] = [
    { id: 'configuration', status: 'ok', found: `state in ${config.state_dir}${how}` },
    ...unreadVariables().map((name) => ({
      id: 'configuration',
      ...warning(
        `the environment has ${name}`,
        'pagegate does not read it; docs/configuration.md lists the variables.',
      ),
    })),
  ];
  return [...configuration, ...(await runChecks([...HOST_CHECKS, ...STATE_CHECKS], config))];
}
