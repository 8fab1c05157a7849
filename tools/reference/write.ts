/** Writes the tables of the reference pages from the code: `node_modules/.bin/node tools/reference/write.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPolicy } from '../../src/policy/load.ts';
import { evaluationTables, judgeSets } from './evaluation.ts';
import { EVALUATION_PAGE, PAGES, renewed } from './pages.ts';

const ROOT = join(import.meta.dirname, '../..');

const pages = { ...PAGES, [EVALUATION_PAGE]: evaluationTables(judgeSets(loadPolicy())) };
for (const [page, tables] of Object.entries(pages)) {
  const path = join(ROOT, page);
  writeFileSync(path, await renewed(readFileSync(path, 'utf8'), tables));
}
