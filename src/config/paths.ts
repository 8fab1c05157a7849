/** The layout of the state directory. */
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config } from './config.ts';

/** Names in the index store: the link to the served generation, and the index file in a generation's folder. */
export const CURRENT_LINK = 'current';
export const INDEX_FILE = 'index.pgx';

export interface StatePaths {
  /** `index/`: the index store with the generations and the link `current`. */
  readonly indexDir: string;
  /** `index/current`: a link to the served generation. */
  readonly currentLink: string;
  /** The index file that a server opens: by way of the link `current`, unless the configuration names a file. */
  readonly indexFile: string;
  /** The ledger of this host; in a fleet, the node's copy of the ledger. */
  readonly ledgerFile: string;
  readonly ledgerKeyFile: string;
  readonly licenseFile: string;
  readonly runDir: string;
  /** The Unix socket for reload, restart, drain and status. */
  readonly socket: string;
  readonly logDir: string;
  /** Users, sessions and time series of the console. */
  readonly consoleFile: string;
}

/** Returns the paths of the state directory. Some settings move a path elsewhere. */
export function statePaths(config: Config): StatePaths {
  const at = (...names: string[]): string => join(config.state_dir, ...names);
  return {
    indexDir: at('index'),
    currentLink: at('index', CURRENT_LINK),
    indexFile: config.index.path ?? at('index', CURRENT_LINK, INDEX_FILE),
    ledgerFile: config.ledger.url === null ? localLedgerFile(config) : at('fleet', 'ledger.sqlite'),
    ledgerKeyFile: at('keys', 'ledger.key'),
    licenseFile: at('license', 'license.json'),
    runDir: at('run'),
    socket: config.admin.socket ?? at('run', 'pagegate.sock'),
    logDir: config.decision_log.dir ?? at('log'),
    consoleFile: at('console', 'console.sqlite'),
  };
}

/** Returns folders of which every installation has at least one. */
export function keptFolders(config: Config): string[] {
  const { indexDir, ledgerFile, ledgerKeyFile, licenseFile } = statePaths(config);
  const files = [localLedgerFile(config), ledgerFile, ledgerKeyFile, licenseFile];
  return [indexDir, ...files.map((file) => dirname(file))];
}

/** Returns the path of the ledger of a single host, even if the configuration names a fleet's database. */
export const localLedgerFile = (config: Config): string => join(config.state_dir, 'ledger', 'ledger.sqlite');

/** Returns the location of the ledger for the module `ledger`: a file of this host, or a fleet's database and the file of this node's copy. */
export function ledgerLocation(config: Config) {
  const { ledgerFile: file, currentLink } = statePaths(config);
  const { url, password_file, ca_file } = config.ledger;
  if (url === null) return { file };
  const fleet = {
    engine: { url, passwordFile: password_file ?? undefined, caFile: ca_file ?? undefined },
    nodeName: config.fleet.node_name ?? hostname().slice(0, NODE_NAME_MAX),
    maxStalenessSeconds: config.fleet.max_staleness_seconds,
    currentLink,
  };
  return { file, fleet };
}

const NODE_NAME_MAX = 64;
