/** Small index files built from lines of a drop, for tests about responses rather than bytes. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Metadata } from '../../src/index/write.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { writeTinyIndex } from './tiny-index.ts';

/** One line of a drop, as an object. */
export type EntryInput = { readonly domain: string; readonly [field: string]: unknown };

/** Writes an index of these entries to `path`, which must not exist. Throws if a builder would reject a value. */
export function writeIndex(path: string, entries: readonly EntryInput[], metadata: Partial<Metadata> = {}): void {
  const parsed = entries.map((entry) => {
    const { entry: read, rejects } = parseEntry(Buffer.from(JSON.stringify(entry)));
    if (read === undefined || rejects.length > 0) throw new Error(`${entry.domain}: ${JSON.stringify(rejects)}`);
    return read;
  });
  mkdirSync(dirname(path), { recursive: true });
  writeTinyIndex(path, parsed, { metadata });
}
