/** What docs/configuration.md lists, read from the configuration's schema. */
import { OTHER_VARIABLES } from '../../src/config/environment.ts';
import { describeValues, settings } from '../../src/config/schema.ts';
import { code, markdownCell, markdownTable } from './markdown.ts';

/** Every setting in the order of the schema. */
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

/** Every other variable of the environment that something here reads. */
function variableTable(): string {
  const rows = Object.entries(OTHER_VARIABLES).map(([name, { reader, meaning }]) => [
    code(name),
    reader,
    markdownCell(meaning),
  ]);
  return markdownTable([['variable', 'read by', 'meaning'], ...rows]);
}

export const settingTables = { settings: settingTable, variables: variableTable };
