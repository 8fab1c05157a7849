/** The tables of docs/configuration.md, generated from the configuration's schema. */
import { OTHER_VARIABLES } from '../../src/config/environment.ts';
import { describeValues, settings } from '../../src/config/schema.ts';
import { code, markdownCell, markdownTable } from './markdown.ts';

/** Returns a table of all settings in the order of the schema. */
function settingTable(): string {
  const rows = settings.map((setting) => [
    code(setting.name),
    describeValues(setting.schema, code),
    code(JSON.stringify(setting.schema.default)),
    code(setting.env),
    markdownCell(setting.schema.description ?? ''),
  ]);
  return markdownTable([['setting', 'value', 'default', 'environment', 'meaning'], ...rows]);
}

/** Returns a table of all other environment variables that the program or a tool reads. */
function variableTable(): string {
  const rows = Object.entries(OTHER_VARIABLES).map(([name, { reader, meaning }]) => [
    code(name),
    reader,
    markdownCell(meaning),
  ]);
  return markdownTable([['variable', 'read by', 'meaning'], ...rows]);
}

export const settingTables = { settings: settingTable, variables: variableTable };
