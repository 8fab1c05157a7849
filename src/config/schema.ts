/** The configuration's JSON Schema as this program reads it: which settings there are, of which type, with which defaults. */
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

/** A setting with its place: `server.port`, `PAGEGATE_SERVER_PORT`. */
export interface Setting {
  readonly path: readonly string[];
  readonly name: string;
  readonly env: string;
  readonly schema: SettingSchema;
}

const SCHEMA_URL = new URL('../../data/schema/config.schema.json', import.meta.url);

export const configSchema: SettingSchema = JSON.parse(readFileSync(SCHEMA_URL, 'utf8'));

/** The variable of the environment that sets what is at a path. */
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

/** Which types a value of this setting may have. */
export function typesOfSetting(schema: SettingSchema): readonly string[] {
  if (typeof schema.type === 'string') return [schema.type];
  if (schema.type !== undefined) return schema.type;
  if (schema.anyOf !== undefined) return schema.anyOf.map((option) => option.type ?? 'string');
  return ['string'];
}

/** A type with its bounds, in words. */
function typeWithBounds(type: string, schema: Readonly<Record<string, unknown>>): string {
  if (type !== 'integer' && type !== 'number') return type;
  const [from, to] = [schema['minimum'], schema['maximum']].map((bound) =>
    bound === undefined ? undefined : withCommas(Number(bound)),
  );
  if (from === undefined) return type;
  return to === undefined ? `${type}, at least ${from}` : `${type}, ${from} to ${to}`;
}

/**
 * The values that a setting takes, in words: types with their bounds, or the texts to choose from.
 *
 * @param mark sets a text to choose off from the words
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
