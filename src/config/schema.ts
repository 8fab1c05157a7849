/** The settings with their types and defaults, read from the JSON Schema of the configuration. */
import { readFileSync } from 'node:fs';
import { withCommas } from '../counted.ts';

export interface SettingSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly { readonly type?: string; readonly const?: string }[];
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SettingSchema>>;
  readonly [keyword: string]: unknown;
}

/** A setting with its name and its environment variable: `server.port`, `PAGEGATE_SERVER_PORT`. */
export interface Setting {
  readonly path: readonly string[];
  readonly name: string;
  readonly env: string;
  readonly schema: SettingSchema;
}

const SCHEMA_URL = new URL('../../data/schema/config.schema.json', import.meta.url);

export const configSchema: SettingSchema = JSON.parse(readFileSync(SCHEMA_URL, 'utf8'));

/** Returns the name of the environment variable for a path. */
const variableOf = (path: readonly string[]): string => `PAGEGATE_${path.join('_').toUpperCase()}`;

function collect(schema: SettingSchema, path: readonly string[], into: Setting[]): Setting[] {
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    if (name === '$schema') continue;
    const here = [...path, name];
    if (child.properties !== undefined) collect(child, here, into);
    else into.push({ path: here, name: here.join('.'), env: variableOf(here), schema: child });
  }
  return into;
}

/** Every setting, in the order of the schema. */
export const settings: readonly Setting[] = collect(configSchema, [], []);

/** Returns the types that a value of this setting may have. */
export function typesOfSetting(schema: SettingSchema): readonly string[] {
  if (typeof schema.type === 'string') return [schema.type];
  if (schema.type !== undefined) return schema.type;
  if (schema.anyOf !== undefined) return schema.anyOf.map((option) => option.type ?? 'string');
  return ['string'];
}

/** Describes a type with its bounds, for example `integer, 0 to 65,535`. */
function typeWithBounds(type: string, schema: Readonly<Record<string, unknown>>): string {
  if (type !== 'integer' && type !== 'number') return type;
  const [from, to] = [schema['minimum'], schema['maximum']].map((bound) =>
    bound === undefined ? undefined : withCommas(Number(bound)),
  );
  if (from === undefined) return type;
  return to === undefined ? `${type}, at least ${from}` : `${type}, ${from} to ${to}`;
}

/**
 * Describes the values of a setting: types with their bounds, or the texts to choose from.
 *
 * @param mark formats a text to choose, for example as code
 */
export function describeValues(schema: SettingSchema, mark = (text: string): string => text): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => mark(String(value))).join(', ');
  if (schema.anyOf !== undefined) {
    const choices = schema.anyOf.map((choice) =>
      choice.const === undefined ? typeWithBounds(choice.type ?? 'string', choice) : mark(choice.const),
    );
    return choices.join(' or ');
  }
  return typesOfSetting(schema)
    .map((type) => typeWithBounds(type, schema))
    .join(' or ');
}
