/** Where things lie in the state directory. */
import { join } from 'node:path';
import type { Config } from './config.ts';

/** In the index store: the link to the generation that is served, and the index in a generation's folder. */
export const CURRENT_LINK = 'current';
export const INDEX_FILE = 'index.pgx';

export interface StatePaths {
  /** `index/`: the generations and the link `current`. */
  readonly indexDir: string;
  /** `index/current`: a link to the generation that is served. */
  readonly currentLink: string;
  /** The index file that a server opens; it goes through the link `current` unless the configuration names a file. */
  readonly indexFile: string;
  readonly ledgerFile: string;
  readonly ledgerKeyFile: string;
  readonly licenseFile: string;
  readonly runDir: string;
  /** The Unix socket for reload, drain and status. */
  readonly socket: string;
  readonly logDir: string;
  /** Users, sessions and time series of the console. */
  readonly consoleFile: string;
}

/** The layout of the state directory, with the places that the configuration moves elsewhere. */
export function statePaths(config: Config): StatePaths {
  const at = (...names: string[]): string => join(config.state_dir, ...names);
  return {
    indexDir: at('index'),
    currentLink: at('index', CURRENT_LINK),
    indexFile: config.index.path ?? at('index', CURRENT_LINK, INDEX_FILE),
    ledgerFile: at('ledger', 'ledger.sqlite'),
    ledgerKeyFile: at('keys', 'ledger.key'),
    licenseFile: at('license', 'license.json'),
    runDir: at('run'),
    socket: config.admin.socket ?? at('run', 'pagegate.sock'),
    logDir: config.decision_log.dir ?? at('log'),
    consoleFile: at('console', 'console.sqlite'),
  };
}
