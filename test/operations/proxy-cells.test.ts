/** The table of what each proxy sees, against the tests that show it, in both directions. */
import { describe, expect, test } from 'vitest';
import { PROXY_CELLS, TOURS } from '../integrations/proxy-cells.ts';
import { textOf } from '../tidy/tree.ts';

const cellsOf = (line: string): string[] => line.slice(2, -2).split(' | ');

describe('the table of proxies in docs/integrations.md', () => {
  const place = textOf('docs/integrations.md').split('<!-- table proxies -->')[1]?.split('<!-- end -->')[0] ?? '';
  const [heading = '', , ...rows] = place.split('\n').filter((line) => line.startsWith('|'));
  const columns = cellsOf(heading).slice(1);
  const table = new Map(
    rows.map(cellsOf).map(([point = '', ...cells]) => [/^\[([^\]]+)\]/.exec(point)?.[1] ?? point, cells] as const),
  );

  test('says judged where a test shows it, and nowhere else', () => {
    const judged = [...table].map(([point, cells]) => [point, columns.filter((_, i) => cells[i] === 'judged').sort()]);
    const shown = Object.entries(PROXY_CELLS).map(([point, cells]) => [point, Object.keys(cells).sort()]);
    expect(Object.fromEntries(judged)).toEqual(Object.fromEntries(shown));
  });

  test('has a word for each cell', () => {
    expect(columns).toHaveLength(11);
    for (const [point, cells] of table) {
      expect(cells.length, point).toBe(columns.length);
      for (const cell of cells) expect(['judged', 'not seen', 'never made', 'refused'], point).toContain(cell);
    }
  });

  test.each(Object.entries(PROXY_CELLS))('%s: its tests are there', (point, cells) => {
    for (const [file, words] of Object.values(cells)) expect(textOf(file), `${file}: ${words}`).toContain(words);
    const tour = TOURS[point];
    if (tour !== undefined) expect(textOf(tour)).toContain('testTour(context, ');
    expect(Object.values(cells).some(([file]) => file.endsWith('/tour.ts'))).toBe(tour !== undefined);
  });
});
