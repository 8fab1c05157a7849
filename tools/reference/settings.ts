/** What docs/configuration.md lists, read from the configuration's schema. */
import { OTHER_VARIABLES } from '../../src/config/config.ts';
import { type Setting, settings, typesOf } from '../../src/config/schema.ts';
import { cell, code, table } from './markdown.ts';

/** A type with its bounds, in words. */
function typeWithBounds(type: string, schema: Readonly<Record<string, unknown>>): string {
  if (type !== 'integer' && type !== 'number') return type;
  const [from, to] = [schema['minimum'], schema['maximum']].map((bound) =>
    bound === undefined ? undefined : Number(bound).toLocaleString('en-US'),
  );
  if (from === undefined) return type;
  return to === undefined ? `${type}, at least ${from}` : `${type}, ${from} to ${to}`;
}

/** The values that a setting takes: types with their bounds, or the texts to choose from. */
function valuesOf({ schema }: Setting): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => code(String(value))).join(', ');
  if (schema.anyOf !== undefined) {
    const choices = schema.anyOf.map((choice) =>
      choice.const === undefined ? typeWithBounds(choice.type ?? 'string', choice) : code(choice.const),
    );
    return choices.join(' or ');
  }
  return typesOf(schema)
    .map((type) => typeWithBounds(type, schema))
    .join(' or ');
}

/** Every setting in the order of the schema. */
function settingTable(): string {
  const rows = settings.map((setting) => [
    code(setting.name),
    valuesOf(setting),
    code(JSON.stringify(setting.schema.default)),
    code(setting.env),
    cell(setting.schema.description ?? ''),
  ]);
  return table([['setting', 'value', 'default', 'environment', 'meaning'], ...rows]);
}

/** Every other variable of the environment that something here reads. */
function variableTable(): string {
  const rows = Object.entries(OTHER_VARIABLES).map(([name, { reader, meaning }]) => [
    code(name),
    reader,
    cell(meaning),
  ]);
  return table([['variable', 'read by', 'meaning'], ...rows]);
}

export const settingTables = { settings: settingTable, variables: variableTable };
