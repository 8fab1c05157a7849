/**
 * The configuration: built-in defaults, then the file, then the environment, then the flags of the command; each overrides the
 * one before it, setting by setting. The result is checked against `data/schema/config.schema.json` and never changes afterwards.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { type ErrorObject, type ValidateFunction, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { PagegateError } from '../errors.ts';
import { shown } from '../json/schema-problem.ts';
import { SELDOM_ASKED_SCHEMA } from '../json/shipped-schemas.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { isLoopback, parseNetwork } from '../network/address.ts';
import { readSmallFile } from '../platform/small-file.ts';
import { configSchema, type Setting, settings, typesOf, valuesOf } from './schema.ts';
import { isPem } from './trusted-keys.ts';

/** A configuration file is a page of JSON; what is larger is something else. */
const FILE_MAX_BYTES = LIMITS.configurationBytes.value;

/** All settings; `docs/configuration.md` says what each means. Paths are absolute. */
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

/** Whether a listener of ours at this address would take plain HTTP from other hosts. */
export const isPlainBeyondLoopback = ({ tls }: Config, host: string): boolean =>
  tls.certificate_file === null && !isLoopback(host);

/** Settings to override, nested as in the file. */
export type ConfigOverrides = { readonly [section: string]: unknown };

export interface ConfigSources {
  /** The configuration file; without it `PAGEGATE_CONFIG` is asked, and without that there is none. */
  readonly file?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly flags?: ConfigOverrides;
  /** Where relative paths start that do not come from a file. */
  readonly cwd?: string;
}

const ENVIRONMENT = 'the environment';

type Tree = { [name: string]: unknown };

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
    merge(merged, resolvePaths(tree, dirname(path)));
  }
  const fromEnv = readEnvironment(env);
  checkPart(fromEnv, ENVIRONMENT);
  merge(merged, resolvePaths(fromEnv, cwd));
  const flags = structuredClone(sources.flags ?? {}) as Tree;
  checkPart(flags, 'the command line');
  merge(merged, resolvePaths(flags, cwd));
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

/** Settings of earlier versions, and what became of them. */
const REMOVED: Readonly<Record<string, string>> = {
  'ledger.durability':
    'ledger.durability is gone: charges are durable before they are made, and no answer waits for the disk; remove the setting',
  'index.poll_seconds': 'index.poll_seconds is now server.poll_seconds',
};

/** @throws PagegateError config_invalid for a setting that has gone */
function refuseRemoved(tree: Tree, source: string): void {
  const found = Object.entries(REMOVED).find(([name]) => valueAt(tree, name.split('.')) !== undefined);
  if (found !== undefined) throw new PagegateError('config_invalid', `${source}: ${found[1]}.`, { source });
}

function readConfigFile(path: string): Tree {
  const bytes = readSmallFile(path, { code: 'config_unreadable', maxBytes: FILE_MAX_BYTES });
  const tree = parseDocument(bytes, 'config_invalid', path);
  if (typeof tree !== 'object' || tree === null || Array.isArray(tree)) {
    throw new PagegateError('config_invalid', `${path} is not a JSON object.`, { source: path });
  }
  refuseRemoved(tree as Tree, path);
  return tree as Tree;
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>): Tree {
  const tree: Tree = {};
  const known = new Map(settings.map((setting) => [setting.env, setting]));
  const sections = settings
    .filter((setting) => setting.path.length > 1)
    .map((setting) => setting.path[0]!.toUpperCase());
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('PAGEGATE_') || text === undefined) continue;
    const setting = known.get(name);
    const removed = Object.entries(REMOVED).find(([one]) => name === `PAGEGATE_${one.replace('.', '_').toUpperCase()}`);
    if (removed !== undefined) throw new PagegateError('config_invalid', `The environment has ${name}: ${removed[1]}.`);
    if (setting !== undefined) place(tree, setting.path, parseText(setting, text));
    else if (!(name in OTHER_VARIABLES) && sections.some((section) => name.startsWith(`PAGEGATE_${section}_`))) {
      throw new PagegateError(
        'config_invalid',
        `The environment has ${name}, which is no setting; see docs/configuration.md.`,
        { name },
      );
    }
  }
  return tree;
}

/** A variable of the environment that is not a setting: who reads it, and for what. */
interface OtherVariable {
  readonly reader: string;
  readonly meaning: string;
}

/** Variables that are not settings. */
export const OTHER_VARIABLES: Readonly<Record<string, OtherVariable>> = {
  PAGEGATE_PROGRAM: {
    reader: '`serve`',
    meaning: 'The path by which the program was called; a restart starts what it leads to then. The program sets it.',
  },
  NODE_COMPILE_CACHE: {
    reader: 'every command',
    meaning:
      'The folder of compiled code, default `node_modules/.cache/pagegate` beside the program. A start takes a quarter of the time with it. Where the program may not write there, it starts as without.',
  },
  PAGEGATE_SUCCESSOR: {
    reader: '`serve`',
    meaning: 'Says that this server follows a running one. The running server sets it at a restart.',
  },
  PAGEGATE_CONFIG: { reader: 'every command', meaning: 'The configuration file, where `--config` names none.' },
  PAGEGATE_SERVER: {
    reader: '`pagegate-allows.sh`',
    meaning: 'The URL of the server that the shell line asks: `https://127.0.0.1:8443`.',
  },
  PAGEGATE_HEADER: { reader: '`pagegate-allows.sh`', meaning: 'A file with the line `X-API-Key: …`.' },
  PAGEGATE_CA: { reader: '`pagegate-allows.sh`', meaning: 'A certificate authority of your own, in PEM.' },
  PAGEGATE_SEED: { reader: '`make test`', meaning: 'The seed of the property tests; 3 unless set.' },
  DIFFERENTIAL_QUESTIONS: {
    reader: '`make differential`',
    meaning: 'How many generated URLs local verdicts and the server are compared on; a small number in `make test`.',
  },
  CONSOLE_SHOTS: { reader: '`make test-console`', meaning: 'A folder that pictures of the pages are written to.' },
  PAGEGATE_POSTGRES_BIN: {
    reader: '`make test-fleet`, `make chaos-fleet`, `make demo-fleet`',
    meaning: 'The folder of the PostgreSQL programs that they start; of Debian’s newest version unless set.',
  },
  PAGEGATE_LEDGER_PASSWORD: {
    reader: 'ledger',
    meaning: 'The password of the user in `ledger.url`, where `ledger.password_file` names no file.',
  },
  CREDENTIALS_DIRECTORY: {
    reader: 'ledger',
    meaning: 'Set by systemd: the folder that may hold the credential `pagegate-ledger-key`.',
  },
};

/** Variables that look like ours and that nothing reads, in the order of their names: perhaps misspelled settings. */
export function unreadVariables(env: Readonly<Record<string, string | undefined>> = process.env): string[] {
  const known = new Set(settings.map((setting) => setting.env));
  return Object.keys(env)
    .filter((name) => name.startsWith('PAGEGATE_') && !known.has(name) && !(name in OTHER_VARIABLES))
    .sort();
}

/** Reads the text of an environment variable as the setting's type wants it. */
function parseText(setting: Setting, text: string): unknown {
  const types = typesOf(setting.schema);
  if ((types.includes('null') || setting.schema.enum?.includes(null)) && text === '') return null;
  if (types.includes('boolean'))
    return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
  if ((types.includes('integer') || types.includes('number')) && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (types.includes('array')) return text === '' ? [] : text.split(',').map((item) => item.trim());
  if (types.includes('object')) {
    return parseDocument(Buffer.from(text), 'config_invalid', `In the environment: ${setting.env}`);
  }
  return text;
}

function place(tree: Tree, path: readonly string[], value: unknown): void {
  const [section, name] = path;
  if (name === undefined) tree[section!] = value;
  else tree[section!] = { ...(tree[section!] as Tree | undefined), [name]: value };
}

function merge(into: Tree, from: Tree): void {
  for (const setting of settings) {
    const value = valueAt(from, setting.path);
    if (value !== undefined) place(into, setting.path, value);
  }
}

function valueAt(tree: Tree, path: readonly string[]): unknown {
  let value: unknown = tree;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Tree)[name];
  }
  return value;
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
      place(copy, setting.path, resolve(base, value));
    if (setting.path[1] === 'trusted_keys' && typeof value === 'object' && value !== null) {
      place(copy, setting.path, resolveKeys(value as Record<string, string>, base));
    }
  }
  return copy;
}

function resolveKeys(keys: Readonly<Record<string, string>>, base: string): Record<string, string> {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, isPem(key) ? key : resolve(base, key)]));
}

/** Checks what one source sets. @throws PagegateError config_invalid */
const checkPart = (tree: Tree, source: string): void => check(structuredClone(tree), source);

/** Fills in the defaults of all settings and checks the whole. @throws PagegateError config_invalid */
const checkWhole = (tree: Tree): void => check(tree, 'the configuration');

/** Compiled once: every command waits for it. */
let validator: ValidateFunction<Tree> | undefined;

/** Fills in defaults, too. @throws PagegateError config_invalid */
function check(tree: Tree, source: string): void {
  validator ??= new Validator({
    allErrors: true,
    allowUnionTypes: true,
    useDefaults: true,
    verbose: true,
    ...SELDOM_ASKED_SCHEMA,
  }).compile<Tree>(configSchema);
  const lines = validator(tree)
    ? [...nulProblems(tree, source), ...networkProblems(tree, source)]
    : describeAll(validator.errors ?? [], source);
  if (lines.length === 0) return;
  const extra = lines.length > 5 ? ` (and ${lines.length - 5} more)` : '';
  throw new PagegateError('config_invalid', `In ${source}: ${lines.slice(0, 5).join('; ')}${extra}.`, {
    source,
    problems: lines,
  });
}

/** Settings with the one character that no path can have: what the system says of it names no setting. */
function nulProblems(tree: Tree, source: string): string[] {
  const hasNul = (value: unknown): boolean =>
    typeof value === 'string'
      ? value.includes('\0')
      : typeof value === 'object' && value !== null && Object.values(value).some(hasNul);
  return settings
    .filter(({ path }) => hasNul(valueAt(tree, path)))
    .map(({ name }) => `${placeOf(name, source)} has a NUL character`);
}

const NETWORKS = ['exempt', 'trusted_proxies'] as const;

/** What is wrong with the networks of a tree that keeps the schema: a schema can hardly say what an address is. */
function networkProblems(tree: Tree, source: string): string[] {
  return NETWORKS.flatMap((name) =>
    ((valueAt(tree, ['burst', name]) ?? []) as readonly string[])
      .filter((text) => parseNetwork(text) === undefined)
      .map(
        (text) =>
          `${placeOf(`burst.${name}`, source)} has "${text}", which is neither an address nor a network such as 10.0.0.0/8`,
      ),
  );
}

/** One sentence for each place that is wrong: a setting of several types fails each of them. */
function describeAll(errors: readonly ErrorObject[], source: string): string[] {
  const places = new Map<string, string>();
  for (const error of errors) {
    const unknown = error.params['additionalProperty'];
    const key = `${error.instancePath}\n${typeof unknown === 'string' ? unknown : ''}`;
    if (!places.has(key)) places.set(key, describe(error, source));
  }
  return [...places.values()];
}

/** The setting that a place is in; undefined where it is in none. */
const settingOf = (place: string): Setting | undefined =>
  settings.find(({ name }) => place === name || place.startsWith(`${name}.`));

/** What messages call a place: in the environment by its variable, too. */
function placeOf(place: string, source: string): string {
  const setting = settingOf(place);
  return source === ENVIRONMENT && setting !== undefined ? `${setting.env} (${place})` : place;
}

function describe(error: ErrorObject, source: string): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.') || 'the top level';
  const unknown = error.params['additionalProperty'];
  if (typeof unknown === 'string') return `${where} has no setting "${unknown}"`;
  return `${placeOf(where, source)}: expected ${expectedBy(error, settingOf(where))}, got ${shown(error.data)}`;
}

function expectedBy({ keyword, message = 'another value', params }: ErrorObject, setting: Setting | undefined): string {
  if (keyword === 'minLength') return 'a text that is not empty';
  if (keyword === 'pattern') return `a text of the form ${params['pattern']}`;
  if (keyword === 'type' && setting !== undefined && !typesOf(setting.schema).some((type) => NESTED.has(type)))
    return valuesOf(setting.schema);
  if (['minimum', 'maximum', 'enum', 'const'].includes(keyword) && setting !== undefined)
    return valuesOf(setting.schema);
  return keyword === 'type' ? String(params['type']) : `that it ${message}`;
}

/** Values with values in them: what is wrong may be one of those. */
const NESTED: ReadonlySet<string> = new Set(['array', 'object']);
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}
