/** The tables of docs/vocabulary.md, generated from the data that answers and drops are checked with. */
import { filteringTaxonomy } from '../../src/record/taxonomy.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { markdownTable } from './markdown.ts';

/** Returns a table of all page types in vocabulary order, with their verdicts and aliases. */
function pageTypeTable(): string {
  const rows = pageTypes('full').map(({ name, verdict, core, aliases, meaning }) => [
    `\`${name}\``,
    core ? 'core' : 'full',
    verdict,
    meaning,
    aliases.map((alias) => `\`${alias}\``).join(', '),
  ]);
  return markdownTable([['page type', 'in', 'verdict', 'what it is', 'aliases on import'], ...rows]);
}

/** Returns a table of all filtering categories in the order of the taxonomy. */
function filteringTable(): string {
  const rows = filteringTaxonomy.map(({ id, name, group, threat, meaning }) => [
    name,
    `\`${id}\``,
    group,
    threat ? 'yes' : '',
    meaning,
  ]);
  return markdownTable([['category', 'id', 'group', 'threat', 'what it is'], ...rows]);
}

export const vocabularyTables = { 'page-types': pageTypeTable, filtering: filteringTable };
