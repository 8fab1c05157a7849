/** Checks settings against their schema, fills in its defaults, and describes what is wrong, setting by setting. */
import { type ErrorObject, type ValidateFunction, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { PagegateError } from '../../errors.ts';
import { didYouMean } from '../../json/did-you-mean.ts';
import { shortJson } from '../../json/schema-problem.ts';
import { SELDOM_USED_SCHEMA_OPTIONS } from '../../json/shipped-schemas.ts';
import { parseNetwork } from '../../network/address.ts';
import { configSchema, describeValues, type Setting, settings, typesOfSetting } from '../schema.ts';
import { type Tree, valueAt } from './setting-tree.ts';

/** The name of the environment as a source, in messages. */
export const ENVIRONMENT = 'the environment';

/** Maximum number of problems in one message. */
const PROBLEMS_MAX = 5;

/** Checks the settings of one source. @throws PagegateError config_invalid */
export const checkPart = (tree: Tree, source: string): void => check(structuredClone(tree), source);

/** Fills in all defaults and checks the complete configuration. @throws PagegateError config_invalid */
export const checkWhole = (tree: Tree): void => check(tree, 'the configuration');

/** Compiled once, because compiling delays every command. */
let validator: ValidateFunction<Tree> | undefined;

/** Checks a tree, and fills in its defaults. @throws PagegateError config_invalid */
function check(tree: Tree, source: string): void {
  validator ??= new Validator({
    allErrors: true,
    allowUnionTypes: true,
    useDefaults: true,
    verbose: true,
    ...SELDOM_USED_SCHEMA_OPTIONS,
  }).compile<Tree>(configSchema);
  const lines = validator(tree)
    ? [...nulProblems(tree, source), ...networkProblems(tree, source)]
    : describeAll(validator.errors ?? [], source);
  if (lines.length === 0) return;
  const extra = lines.length > PROBLEMS_MAX ? ` (and ${lines.length - PROBLEMS_MAX} more)` : '';
  throw new PagegateError('config_invalid', `In ${source}: ${lines.slice(0, PROBLEMS_MAX).join('; ')}${extra}.`, {
    source,
    problems: lines,
  });
}

/** Finds settings with a NUL character, which no path can have: the system's own error would not name the setting. */
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

/** Finds networks that cannot be parsed, in a tree that is valid by its schema: JSON Schema can hardly describe an address. */
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

/** Describes each wrong place once: a setting with several allowed types has one error for each type. */
function describeAll(errors: readonly ErrorObject[], source: string): string[] {
  const places = new Map<string, string>();
  for (const error of errors) {
    const unknown = error.params['additionalProperty'];
    const key = `${error.instancePath}\n${typeof unknown === 'string' ? unknown : ''}`;
    if (!places.has(key)) places.set(key, describe(error, source));
  }
  return [...places.values()];
}

/** Returns the setting that contains a place; undefined if there is none. */
const settingOf = (place: string): Setting | undefined =>
  settings.find(({ name }) => place === name || place.startsWith(`${name}.`));

/** Returns the name of a place for messages. If the source is the environment, the name includes the variable. */
function placeOf(place: string, source: string): string {
  const setting = settingOf(place);
  return source === ENVIRONMENT && setting !== undefined ? `${setting.env} (${place})` : place;
}

function describe(error: ErrorObject, source: string): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.') || 'the top level';
  const unknown = error.params['additionalProperty'];
  if (typeof unknown === 'string') {
    const parent = error.instancePath.split('/').slice(1);
    const known = settings
      .filter(({ path }) => parent.every((part, at) => path[at] === part))
      .map(({ path }) => path[parent.length] ?? '');
    return `${where} has no setting "${unknown}"${didYouMean(unknown, known)}`;
  }
  return `${placeOf(where, source)}: expected ${expectedBy(error, settingOf(where))}, got ${shortJson(error.data)}`;
}

function expectedBy(error: ErrorObject, setting: Setting | undefined): string {
  const { keyword, message = 'another value', params, parentSchema } = error;
  if (keyword === 'minLength') return 'a text that is not empty';
  if (keyword === 'pattern') {
    const example: unknown = parentSchema?.['examples']?.[0];
    return `a text of the form ${params['pattern']}${example === undefined ? '' : `, such as ${shortJson(example)}`}`;
  }
  if (keyword === 'type' && setting !== undefined && !typesOfSetting(setting.schema).some((type) => NESTED.has(type)))
    return describeValues(setting.schema);
  if (['minimum', 'maximum', 'enum', 'const'].includes(keyword) && setting !== undefined)
    return describeValues(setting.schema);
  return keyword === 'type' ? String(params['type']) : `that it ${message}`;
}

/** Types that contain other values: the wrong value may be one of those. */
const NESTED: ReadonlySet<string> = new Set(['array', 'object']);
