/** What the dataset's model is learned by, on small inputs. */
import { describe, expect, it } from 'vitest';
import { learnPages } from '../../tools/dataset/learn-pages.ts';
import { learnTokens, SCALE } from '../../tools/dataset/learn-tokens.ts';

/** Rows of the packed model: context → [piece, share]. */
function unpack(follow: string): [number, number][][] {
  const bytes = [...Buffer.from(follow, 'base64')];
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes.shift() ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const rows: [number, number][][] = [];
  while (bytes.length > 0) {
    let piece = 0;
    rows.push(
      Array.from({ length: varint() }, () => {
        piece += varint();
        return [piece, varint()] as [number, number];
      }),
    );
  }
  return rows;
}

describe('pieces of labels', () => {
  const labels = ['shop', 'shopping', 'myshop', 'shop24', 'bishop', 'a', 'xn--abc', 'Bad_Label'];
  const { pieces, follow, lengths } = learnTokens(labels);
  const rows = unpack(follow);
  const end = pieces.length;

  it('are merged from the pairs that come most often', () => {
    expect(pieces.slice(37)).toContain('shop');
    expect(pieces).not.toContain('xn');
    expect(new Set(pieces).size).toBe(pieces.length);
  });

  it('have for every context shares that add up', () => {
    expect(rows).toHaveLength(pieces.length + 1);
    for (const row of rows) expect(row.reduce((sum, [, share]) => sum + share, 0)).toBe(SCALE);
  });

  it('begin and end as the labels do', () => {
    const share = (context: number, piece: number): number => rows[context]?.find(([p]) => p === piece)?.[1] ?? 0;
    const shop = pieces.indexOf('shop');
    expect(Math.abs(share(end, shop) - SCALE / 2)).toBeLessThanOrEqual(1);
    expect(Math.abs(share(shop, end) - (3 * SCALE) / 5)).toBeLessThanOrEqual(1);
    expect(lengths.slice(0, 4)).toEqual([2, 0, 3, 0]);
    expect(lengths.reduce((sum, count) => sum + count, 0)).toBe(6);
  });
});

describe('shapes of pages', () => {
  const site = (domain: string, pages: Record<string, string>) => ({ domain, page_types: pages });
  const model = learnPages([
    site('a.example', { docs: 'https://docs.a.example/', legal: 'https://www.a.example/de/Impressum.html' }),
    site('b.example', { docs: 'https://docs.b.example/', legal: 'http://b.example/impressum' }),
    site('c.example', { docs: 'https://docs.c.example/', legal: 'https://www.c.example/impressum/' }),
    site('d.example', { docs: 'https://d.example/only-here', legal: 'https://www.d.example/impressum?x=1' }),
  ]);

  it('count schemes, places, endings and locales', () => {
    expect(model.schemes).toEqual([7, 1]);
    expect(model.hosts).toEqual([2, 3, 3]);
    expect(model.locales).toEqual([['de', 1]]);
    expect(model.local).toEqual([1, 8]);
    expect(new Map(model.endings).get('.html')).toBe(1);
  });

  it('keep only what three sites share, without locale, ending and query', () => {
    expect(model.types['legal']?.paths).toEqual([['/impressum', 3]]);
    expect(model.types['docs']).toEqual({ urls: 4, paths: [], hosts: [['docs', 3]] });
    expect(JSON.stringify(model)).not.toContain('only-here');
  });
});
