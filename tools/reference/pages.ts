/** The reference pages and the tables in them that are generated from the code they describe. */
import { commandTables } from './commands.ts';
import { errorPageTables } from './errors.ts';
import { limitTables } from './limits.ts';
import { logEventTables, metricTables } from './monitoring.ts';
import { settingTables } from './settings.ts';
import { vocabularyTables } from './vocabulary.ts';

type Tables = Readonly<Record<string, () => string | Promise<string>>>;

/** Reference page → its generated tables by name. Each is between `<!-- table NAME -->` and `<!-- end -->`. */
export const PAGES: Readonly<Record<string, Tables>> = {
  'docs/cli.md': commandTables,
  'docs/configuration.md': settingTables,
  'docs/errors.md': errorPageTables,
  'docs/limits.md': limitTables,
  'docs/log-events.md': logEventTables,
  'docs/metrics.md': metricTables,
  'docs/vocabulary.md': vocabularyTables,
};

/** The page whose tables take seconds to generate, because every labelled URL is judged for them (`evaluation.ts`). */
export const EVALUATION_PAGE = 'docs/evaluation.md';

/** Returns a page with its tables generated again. @throws Error if the comments around a table are missing */
export async function renewed(text: string, tables: Tables): Promise<string> {
  let result = text;
  for (const [name, make] of Object.entries(tables)) {
    const place = new RegExp(`(<!-- table ${name} -->\n).*?(\n?<!-- end -->)`, 's');
    if (!place.test(result)) throw new Error(`There is no place for the table "${name}".`);
    const made = await make();
    result = result.replace(place, (_all, before: string) => `${before}\n${made}\n\n<!-- end -->`);
  }
  return result;
}
