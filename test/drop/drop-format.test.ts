import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseManifest } from '../../src/drop/manifest.ts';
import { ERRORS } from '../../src/errors.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { FACT_REASONS, LINE_REASONS, PAGE_REASONS, REPAIRS } from '../../src/record/reject-reasons.ts';

const page = readFileSync(new URL('../../docs/drop-format.md', import.meta.url), 'utf8');

/** Returns the names in the first column of the tables between two texts. */
function namesAfter(start: string, end: string): string[] {
  const from = page.indexOf(start);
  expect(from).toBeGreaterThan(-1);
  const text = page.slice(from, page.indexOf(end, from));
  return [...text.matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map((match) => match[1]!);
}

describe('docs/drop-format.md', () => {
  it.each([
    ['rejected lines', 'Level `line`', 'Level `page`', LINE_REASONS],
    ['rejected pages', 'Level `page`', 'Level `fact`', PAGE_REASONS],
    ['rejected facts', 'Level `fact`', '## Repairs', FACT_REASONS],
    ['repairs', '## Repairs', '## What stops a build', REPAIRS],
  ] as const)('lists exactly the %s of the builder, in its order', (_, start, end, names) => {
    expect(namesAfter(start, end)).toEqual(names);
  });

  it('names only errors that exist', () => {
    const text = page.slice(page.indexOf('## What stops a build'), page.indexOf('## Build steps'));
    const names = [...text.matchAll(/`([a-z]+_[a-z_]+)`/g)].map((match) => match[1]!);
    expect(names.length).toBeGreaterThan(12);
    expect(names.filter((name) => !(name in ERRORS))).toEqual([]);
  });

  it('has a valid example manifest and a valid example entry', () => {
    const [manifest, entry] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map((match) => match[1]!);
    expect(parseManifest(Buffer.from(manifest!.replace('…', '0'.repeat(64)))).dataset).toBe('example');
    const parsed = parseEntry(Buffer.from(entry!.trim()));
    expect(parsed).toMatchObject({ rejects: [], repairs: [], entry: { domain: 'example.com', globalRank: 123 } });
  });
});
