/**
 * The configuration: built-in defaults, then the file, then the environment, then the flags of the command. Each source overrides the
 * previous one, setting by setting. The result is checked against `data/schema/config.schema.json` and is immutable.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { PagegateError } from '../errors.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { isLoopback } from '../network/address.ts';
import { readSmallFile } from '../platform/small-file.ts';
import { readEnvironment } from './environment.ts';
import { checkPart, checkWhole, ENVIRONMENT } from './load/check-settings.ts';
import { mergeSettings, setSetting, type Tree, valueAt } from './load/setting-tree.ts';
import { settings } from './schema.ts';
import { isPem } from './trusted-keys.ts';

/** All settings; `docs/configuration.md` explains each. Paths are absolute. */
export interface Config {
  readonly state_dir: string;
  readonly index: {
    readonly path: string | null;
    readonly warm: boolean;
    readonly subdomains: 'exact' | 'parent';
  };
  readonly server: {
    readonly host: string;
    readonly port: number;
    readonly workers: number | 'auto';
    readonly plain_http_anywhere: boolean;
    readonly max_connections: number;
    readonly max_unanswered_per_address: number;
    readonly idle_seconds: number;
    readonly keep_alive_seconds: number;
    readonly poll_seconds: number;
    readonly drain_seconds: number;
  };
  readonly tls: {
    readonly certificate_file: string | null;
    readonly key_file: string | null;
    readonly ciphers: string;
    readonly names: readonly string[];
  };
  readonly ledger: {
    readonly url: string | null;
    readonly password_file: string | null;
    readonly ca_file: string | null;
  };
  readonly fleet: {
    readonly node_name: string | null;
    readonly max_staleness_seconds: number;
  };
  readonly burst: {
    readonly limit: number;
    readonly exempt: readonly string[];
    readonly trusted_proxies: readonly string[];
    readonly max_clients: number;
  };
  readonly policy: { readonly profile: 'strict' | 'default' | 'open' | null; readonly file: string | null };
  readonly license: { readonly trusted_keys: Readonly<Record<string, string>> };
  readonly refresh: {
    readonly trusted_keys: Readonly<Record<string, string>>;
    readonly keep_generations: number;
    readonly drop: string | null;
  };
  readonly admin: {
    readonly enabled: boolean;
    readonly host: string;
    readonly port: number;
    readonly names: readonly string[];
    readonly socket: string | null;
  };
  readonly console: {
    readonly enabled: boolean;
    readonly host: string;
    readonly port: number;
    readonly base_path: string;
    readonly names: readonly string[];
  };
  readonly log: { readonly level: 'error' | 'warn' | 'info'; readonly client_networks: boolean };
  readonly decision_log: {
    readonly enabled: boolean;
    readonly dir: string | null;
    readonly full_url: boolean;
    readonly max_size_mb: number;
    readonly keep_files: number;
    readonly queue_lines: number;
  };
}

/** Whether a listener at this address would accept plain HTTP from other hosts. */
export const isPlainBeyondLoopback = ({ tls }: Config, host: string): boolean =>
  tls.certificate_file === null && !isLoopback(host);

/** Settings that override those of the file and the environment, nested as in the file. */
export type ConfigOverrides = { readonly [section: string]: unknown };

export interface ConfigSources {
  /** The configuration file; by default the one that `PAGEGATE_CONFIG` names, if any. */
  readonly file?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly flags?: ConfigOverrides;
  /** The base of relative paths that do not come from a file; by default the working directory. */
  readonly cwd?: string;
}

/**
 * Loads the configuration.
 *
 * @throws PagegateError config_unreadable or config_invalid; the message names the setting and its source
 */
export function loadConfig(sources: ConfigSources = {}): Config {
  const env = sources.env ?? process.env;
  const cwd = resolve(sources.cwd ?? process.cwd());
  const file = sources.file ?? env['PAGEGATE_CONFIG'];
  const merged: Tree = {};
  if (file === '') {
    const source = sources.file === undefined ? 'PAGEGATE_CONFIG' : '--config';
    throw new PagegateError('config_invalid', `${source} is empty: name the configuration file, or leave it out.`, {
      source,
    });
  }
  if (file !== undefined) {
    const path = resolve(cwd, file);
    const tree = readConfigFile(path);
    checkPart(tree, `the file ${path}`);
    mergeSettings(merged, resolvePaths(tree, dirname(path)));
  }
  const fromEnv = readEnvironment(env);
  checkPart(fromEnv, ENVIRONMENT);
  mergeSettings(merged, resolvePaths(fromEnv, cwd));
  const flags = structuredClone(sources.flags ?? {}) as Tree;
  checkPart(flags, 'the command line');
  mergeSettings(merged, resolvePaths(flags, cwd));
  return complete(merged, cwd);
}

function complete(tree: Tree, cwd: string): Config {
  checkWhole(tree);
  // Defaults are relative to the working directory, as in a checkout.
  const config = resolvePaths(tree, cwd) as unknown as Config;
  if ((config.tls.certificate_file === null) !== (config.tls.key_file === null)) {
    throw new PagegateError(
      'config_invalid',
      'tls.certificate_file and tls.key_file belong together: set both or none.',
    );
  }
  return deepFreeze(config);
}

function readConfigFile(path: string): Tree {
  const bytes = readSmallFile(path, { code: 'config_unreadable', maxBytes: LIMITS.configurationBytes.value });
  const tree = parseDocument(bytes, 'config_invalid', path);
  if (typeof tree !== 'object' || tree === null || Array.isArray(tree)) {
    throw new PagegateError('config_invalid', `${path} is not a JSON object.`, { source: path });
  }
  return tree as Tree;
}

const PATHS = new Set([
  'state_dir',
  'index.path',
  'tls.certificate_file',
  'tls.key_file',
  'ledger.password_file',
  'ledger.ca_file',
  'policy.file',
  'refresh.drop',
  'admin.socket',
  'decision_log.dir',
]);

function resolvePaths(tree: Tree, base: string): Tree {
  const copy = structuredClone(tree);
  for (const setting of settings) {
    const value = valueAt(copy, setting.path);
    if (PATHS.has(setting.name) && typeof value === 'string' && !isAbsolute(value))
      setSetting(copy, setting.path, resolve(base, value));
    if (setting.path[1] === 'trusted_keys' && typeof value === 'object' && value !== null) {
      setSetting(copy, setting.path, resolveKeys(value as Record<string, string>, base));
    }
  }
  return copy;
}

function resolveKeys(keys: Readonly<Record<string, string>>, base: string): Record<string, string> {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, isPem(key) ? key : resolve(base, key)]));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}
