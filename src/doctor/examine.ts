/** All checks of everything that the program depends on. They change nothing. */

import type { Config } from '../config/config.ts';
import { unreadVariables } from '../config/environment.ts';
import { type CheckResult, runChecks, warning } from './check.ts';
import { HOST_CHECKS } from './host-checks.ts';
import { STATE_CHECKS } from './installation-checks.ts';

/** Runs all checks for a configuration that could be read. */
export async function examine(config: Config): Promise<CheckResult[]> {
  const configuration: CheckResult[] = [
    { id: 'configuration', status: 'ok', found: `state in ${config.state_dir}` },
    ...unreadVariables().map((name) => ({
      id: 'configuration',
      ...warning(`the environment has ${name}`, 'Nothing reads it; docs/configuration.md names the variables.'),
    })),
  ];
  return [...configuration, ...(await runChecks([...HOST_CHECKS, ...STATE_CHECKS], config))];
}
