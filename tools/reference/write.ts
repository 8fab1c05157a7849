/** Writes the tables of the reference pages from the code: `node_modules/.bin/node tools/reference/write.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGES, renewed } from './pages.ts';

const ROOT = join(import.meta.dirname, '../..');

for (const [page, tables] of Object.entries(PAGES)) {
  const path = join(ROOT, page);
  writeFileSync(path, await renewed(readFileSync(path, 'utf8'), tables));
}
