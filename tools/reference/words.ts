/** Tables of the words that records are made of: page types and filtering categories. */
import { filteringTaxonomy } from '../../src/record/taxonomy.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Every page type in vocabulary order, with its class and its aliases. */
export function pageTypeTable(): string {
  const rows = pageTypes('full').map(({ name, verdict, core, aliases, meaning }) => [
    `\`${name}\``,
    core ? 'core' : 'full',
    verdict,
    meaning,
    aliases.map((alias) => `\`${alias}\``).join(', '),
  ]);
  return [['page type', 'in', 'class', 'what it is', 'aliases on import'], ['---', '---', '---', '---', '---'], ...rows]
    .map(row)
    .join('\n');
}

/** Every filtering category in the order of the taxonomy. */
export function filteringTable(): string {
  const rows = filteringTaxonomy.map(({ id, name, group, threat, meaning }) => [
    name,
    `\`${id}\``,
    group,
    threat ? 'yes' : '',
    meaning,
  ]);
  return [['category', 'id', 'group', 'threat', 'what it is'], ['---', '---', '---', '---', '---'], ...rows]
    .map(row)
    .join('\n');
}
