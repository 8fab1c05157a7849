/** Reads settings from environment variables, and lists the variables that are not settings. */
import { PagegateError } from '../errors.ts';
import { didYouMean } from '../json/did-you-mean.ts';
import { parseDocument } from '../json/strict-json.ts';
import { setSetting, type Tree } from './load/setting-tree.ts';
import { type Setting, settings, typesOfSetting } from './schema.ts';

/** An environment variable that is not a setting: what reads it, and for what. */
interface OtherVariable {
  readonly reader: string;
  readonly meaning: string;
}

/** Variables that are not settings. */
export const OTHER_VARIABLES: Readonly<Record<string, OtherVariable>> = {
  PAGEGATE_PROGRAM: {
    reader: '`serve`',
    meaning:
      'The path by which the program was called. A restart starts the program at that path. The program sets it.',
  },
  NODE_COMPILE_CACHE: {
    reader: 'every command',
    meaning:
      'The folder of compiled code, default `node_modules/.cache/pagegate` beside the program. With it, a start takes a quarter of the time. If the program may not write there, it starts without it.',
  },
  PAGEGATE_SUCCESSOR: {
    reader: '`serve`',
    meaning: 'Marks this server as the successor of a running one. The running server sets it at a restart.',
  },
  PAGEGATE_CONFIG: { reader: 'every command', meaning: 'The configuration file, if `--config` names none.' },
  PAGEGATE_SERVER: {
    reader: '`pagegate-allows.sh`',
    meaning: 'The URL of the server that the shell line asks: `https://127.0.0.1:8443`.',
  },
  PAGEGATE_HEADER: { reader: '`pagegate-allows.sh`', meaning: 'A file with the line `X-API-Key: …`.' },
  PAGEGATE_CA: { reader: '`pagegate-allows.sh`', meaning: 'A certificate authority of your own, in PEM.' },
  PAGEGATE_SEED: { reader: '`make test`', meaning: 'The seed of the property tests; by default 3.' },
  DIFFERENTIAL_QUESTIONS: {
    reader: '`make differential`',
    meaning:
      'The number of generated URLs for which local verdicts are compared with the server; small in `make test`.',
  },
  CONSOLE_SHOTS: { reader: '`make test-console`', meaning: 'A folder for screenshots of the pages.' },
  PAGEGATE_POSTGRES_BIN: {
    reader: '`make test-fleet`, `make chaos-fleet`, `make demo-fleet`',
    meaning: 'The folder of the PostgreSQL programs that they start; by default those of Debian’s newest version.',
  },
  PAGEGATE_LEDGER_PASSWORD: {
    reader: 'ledger',
    meaning: 'The password of the user in `ledger.url`, if `ledger.password_file` is not set.',
  },
  CREDENTIALS_DIRECTORY: {
    reader: 'ledger',
    meaning: 'Set by systemd: the folder that may hold the credential `pagegate-ledger-key`.',
  },
};

/** Returns the sorted names of `PAGEGATE_…` variables that nothing reads: perhaps misspelled settings. */
export function unreadVariables(env: Readonly<Record<string, string | undefined>> = process.env): string[] {
  const known = new Set(settings.map((setting) => setting.env));
  return Object.keys(env)
    .filter((name) => name.startsWith('PAGEGATE_') && !known.has(name) && !(name in OTHER_VARIABLES))
    .sort();
}

/** Returns the settings in the environment. @throws PagegateError config_invalid */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): Tree {
  const tree: Tree = {};
  const known = new Map(settings.map((setting) => [setting.env, setting]));
  const sections = settings
    .filter((setting) => setting.path.length > 1)
    .map((setting) => setting.path[0]!.toUpperCase());
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('PAGEGATE_') || text === undefined) continue;
    const setting = known.get(name);
    if (setting !== undefined) setSetting(tree, setting.path, parseText(setting, text));
    else if (!(name in OTHER_VARIABLES) && sections.some((section) => name.startsWith(`PAGEGATE_${section}_`))) {
      throw new PagegateError(
        'config_invalid',
        `The environment has ${name}, which is not a setting${didYouMean(name, known.keys())}; see docs/configuration.md.`,
        { name },
      );
    }
  }
  return tree;
}

/** Parses the text of an environment variable by the setting's type. Text that does not fit is returned as it is, for the schema to refuse. */
function parseText(setting: Setting, text: string): unknown {
  const types = typesOfSetting(setting.schema);
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
