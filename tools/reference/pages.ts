/** The reference pages and the parts of them that are made from the code they describe. */
import { commandTables } from './commands.ts';
import { errorPageTables } from './errors.ts';
import { limitTables } from './limits.ts';
import { logEventTables, metricTables } from './monitoring.ts';
import { settingTables } from './settings.ts';
import { vocabularyTables } from './vocabulary.ts';

type Tables = Readonly<Record<string, () => string | Promise<string>>>;

/** Reference page → what is generated in it, by name; each stands between `<!-- table NAME -->` and `<!-- end -->`. */
export const PAGES: Readonly<Record<string, Tables>> = {
  'docs/cli.md': commandTables,
  'docs/configuration.md': settingTables,
  'docs/errors.md': errorPageTables,
  'docs/limits.md': limitTables,
  'docs/log-events.md': logEventTables,
  'docs/metrics.md': metricTables,
  'docs/vocabulary.md': vocabularyTables,
};

/** The page whose tables take seconds to make, because every labelled URL is judged for them (`evaluation.ts`). */
export const EVALUATION_PAGE = 'docs/evaluation.md';

/** A page with its tables generated again. Throws if a table's place is missing. */
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
