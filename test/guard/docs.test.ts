/** The pages about the guard and its enforcement points match the code and the tests. */
import { describe, expect, test } from 'vitest';
import { OVERRIDES, REWRITES } from '../../src/guard/override-headers.ts';
import { GUARD_IDS } from '../../src/guard/refusal.ts';
import { CELLS, type Cells, type Column, DRIVERS, TOURS } from '../integrations/coverage.ts';
import { textOf } from '../tidy/tree.ts';

/** Returns the rows of a table between its markers, heading included. Links are reduced to their texts. */
function tableIn(page: string, name: string): string[][] {
  const text = textOf(page).split(`<!-- table ${name} -->`)[1]?.split('<!-- end -->')[0] ?? '';
  const rows = text.split('\n').filter((line) => line.startsWith('| '));
  return rows.map((line) =>
    line
      .slice(2, -2)
      .split(' | ')
      .map((cell) => cell.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll('`', '')),
  );
}

describe('what each enforcement point sees', () => {
  const [heading = [], ...rows] = tableIn('docs/integrations.md', 'points');
  const columns = heading.slice(1) as Column[];

  test('is documented for every point and every route', () => {
    expect(columns).toHaveLength(11);
    expect(rows.length).toBeGreaterThan(4);
    const words = new Set(rows.flatMap((row) => row.slice(1)));
    expect([...words].filter((word) => !['judged', 'refused', 'not seen', 'never made'].includes(word))).toEqual([]);
    expect(rows.filter((row) => row.length !== heading.length)).toEqual([]);
  });

  test('is shown by a test if a verdict applies, and by none otherwise', () => {
    const judged = (row: string[]) => columns.filter((_column, at) => row[at + 1] === 'judged');
    const documented = Object.fromEntries(rows.map((row) => [row[0], judged(row).sort()]));
    const shown = Object.fromEntries(Object.entries(CELLS).map(([point, cells]) => [point, Object.keys(cells).sort()]));
    expect(shown).toEqual(documented);
  });

  test.each(Object.entries(CELLS))('%s: its tests exist', (point, cells: Cells) => {
    for (const [file, title] of Object.values(cells)) expect(textOf(file), `${file}: ${title}`).toContain(title);
    const tour = TOURS[point];
    if (tour !== undefined) expect(textOf(tour)).toContain('testTour(context, ');
    expect(Object.values(cells).some(([file]) => file.endsWith('/tour.ts'))).toBe(tour !== undefined);
    if (Object.values(cells).some(([file]) => file.endsWith('/tour-tests.ts')))
      expect(textOf(tour!)).toContain('testOpenedTls(context, ');
    const driver = DRIVERS[point];
    if (driver !== undefined) expect(textOf(driver)).toMatch(/ testPages\([\s\S]* testBehindProxy\(/);
    expect(Object.values(cells).some(([file]) => file.endsWith('/browser-tests.ts'))).toBe(driver !== undefined);
  });
});

describe('docs/guard.md', () => {
  test('lists every refusal of the guard’s own, with its note', () => {
    expect(Object.fromEntries(tableIn('docs/guard.md', 'guard-ids').slice(1))).toEqual(GUARD_IDS);
  });

  test('has a row for every option', () => {
    const section = textOf('docs/guard.md').split('## `new Guard(options)`')[1]?.split('| method |')[0] ?? '';
    const named = [...section.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, names = '']) =>
      [...names.matchAll(/\w+/g)].map(([name]) => name),
    );
    const declared = textOf('src/guard/guard.ts').split('export interface GuardOptions {')[1]?.split('\n}')[0] ?? '';
    const options = [...declared.matchAll(/readonly (\w+)\??:/g)].map(([, name]) => name);
    expect(named.sort()).toEqual(options.sort());
  });
});

describe.each(['hook', 'mcp', 'mitmproxy', 'nginx', 'playwright', 'puppeteer', 'python', 'squid'])(
  'the page of %s',
  (point) => {
    test('says how to set it up, what it sees, and what it cannot see', () => {
      const headings = [...textOf(`tools/integrations/${point}/README.md`).matchAll(/^## (.*)$/gm)].map(
        ([, text]) => text,
      );
      expect(headings.filter((heading) => heading?.startsWith('Set up'))).not.toEqual([]);
      expect(headings).toEqual(expect.arrayContaining(['What it sees', 'What it cannot see']));
    });
  },
);

describe('the configuration of Squid', () => {
  /** Returns a header name in every spelling that sites accept. */
  const spellings = ([first = '', ...rest]: readonly string[]): string[] =>
    rest.length === 0 ? [first] : spellings(rest).flatMap((end) => [`${first}-${end}`, `${first}_${end}`]);

  test.each(['squid.conf', 'squid-bump.conf'])('%s removes every header that the guard checks', (file) => {
    const lines = textOf(`tools/integrations/squid/${file}`).matchAll(/^request_header_access (\S+) deny all$/gm);
    const removed = [...lines].map(([, name = '']) => name.toLowerCase());
    const known = [...OVERRIDES, ...REWRITES].flatMap((name) => spellings(name.split('-')));
    expect(removed.sort()).toEqual(known.sort());
  });
});

describe('the hook’s page', () => {
  test('shows the shipped configuration', () => {
    const shown = /```json\n([^`]*)```/.exec(textOf('tools/integrations/hook/README.md'))?.[1] ?? '';
    expect(JSON.parse(shown)).toEqual(JSON.parse(textOf('tools/integrations/hook/settings.json')));
  });
});
