import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readReports, seriesOf, wholesOf } from '../../tools/plot/plot.ts';
import { drawCharts, ticks } from '../../tools/plot/svg.ts';

test('reports become lines, the smallest number of records first', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-plot-'));
  try {
    const write = (name: string, hit: number): void =>
      writeFileSync(
        join(folder, name),
        JSON.stringify({
          rows: [
            { store: 'a', hit },
            { store: 'b', hit: null },
          ],
        }),
      );
    write('lookup-5000000.json', 20);
    write('lookup-1000000.json', 10);
    write('size-1000000.json', 99);
    expect(seriesOf(readReports(folder, 'lookup'), 'store', 'hit')).toEqual([
      {
        name: 'a',
        points: [
          { x: 1e6, y: 10 },
          { x: 5e6, y: 20 },
        ],
      },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('sizes are of whole stores: no part of the index, whatever it is called, and not the sample drop', () => {
  const rows = ['pagegate index, the whole file', '  directory', '    any part', 'sample drop: as delivered', 'lmdb'];
  const [report] = wholesOf([{ records: 1, rows: rows.map((what) => ({ what })) }]);
  expect(report?.rows.map(({ what }) => what)).toEqual(['pagegate index, the whole file', 'lmdb']);
});

test('ticks enclose the values', () => {
  expect(ticks(240, 3_300)).toEqual([200, 500, 1000, 2000, 5000]);
});

test('a chart names its lines and is well-formed where names are hostile', () => {
  const points = [
    { x: 1e6, y: 250 },
    { x: 4e7, y: 600 },
  ];
  const svg = drawCharts([
    { title: 'a < b', series: [{ name: '<script>', points }] },
    { title: 'empty', series: [] },
  ]);
  expect(svg).toContain('&lt;script&gt; 600');
  expect(svg).not.toContain('<script>');
  expect(svg).not.toContain('empty');
  expect(svg.match(/<circle/g)).toHaveLength(2);
});
