/**
 * Creates data/taxonomies/iab-content-3.1.json from IAB Tech Lab's table (content-taxonomy-3.1.tsv, CC BY 3.0).
 * Usage: node tools/sample/make-iab.ts CONTENT_TAXONOMY_TSV > data/taxonomies/iab-content-3.1.json
 */
import { readFileSync } from 'node:fs';

interface Category {
  readonly id: string;
  readonly parent: string | null;
  readonly name: string;
  readonly path: string;
}

/** Reads the table. The path comes from the tier columns; the parent column must lead to the same path. */
export function readIabTable(text: string): Category[] {
  const categories: Category[] = [];
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  for (const line of lines.slice(2)) {
    const cells = line.split('\t').map((cell) => cell.trim());
    const [id = '', parent = '', name = ''] = cells;
    const path = cells
      .slice(3, 7)
      .filter((tier) => tier !== '')
      .join(' > ');
    categories.push({ id, parent: parent === '' ? null : parent, name, path });
  }
  return categories;
}

/** Checks the table. Returns remarks. @throws Error if two categories share an id or a path, or a parent is not in the table */
export function checkIabTable(categories: readonly Category[]): string[] {
  const remarks: string[] = [];
  const byId = new Map(categories.map((category) => [category.id, category]));
  if (byId.size !== categories.length) throw new Error('two categories share an id');
  if (new Set(categories.map((category) => category.path)).size !== categories.length) {
    throw new Error('two categories share a path');
  }
  for (const category of categories) {
    if (category.parent === null) continue;
    const parent = byId.get(category.parent);
    if (parent === undefined) throw new Error(`the parent ${category.parent} of ${category.id} is not in the table`);
    const expected = `${parent.path} > ${category.name}`;
    if (expected !== category.path) remarks.push(`${category.id}: "${category.path}", by its parent "${expected}"`);
  }
  return remarks;
}

if (import.meta.main) {
  const [path] = process.argv.slice(2);
  if (path === undefined) throw new Error('usage: make-iab.ts CONTENT_TAXONOMY_TSV');
  const categories = readIabTable(readFileSync(path, 'utf8'));
  for (const remark of checkIabTable(categories)) process.stderr.write(`${remark}\n`);
  const head = {
    name: 'iab-content',
    version: '3.1',
    title: 'IAB Tech Lab Content Taxonomy 3.1',
    source: 'https://github.com/InteractiveAdvertisingBureau/Taxonomies',
    license: 'CC BY 3.0 (https://creativecommons.org/licenses/by/3.0/)',
    notice:
      'Content Taxonomy by IAB Technology Laboratory, licensed under CC BY 3.0. Changed here: the table became JSON, the tier names of a category are joined by " > ", the extension column is left out.',
  };
  const rows = categories.map((category) => `    ${JSON.stringify(category)}`);
  const open = JSON.stringify(head, null, 2).slice(0, -2);
  process.stdout.write(`${open},\n  "categories": [\n${rows.join(',\n')}\n  ]\n}\n`);
}
