/** Paths in encodings older than UTF-8: their bytes are not hidden dot segments. Real hidden ones are still detected. */
import { describe, expect, it } from 'vitest';
import { parseUrl, SPELLING } from '../../src/domain/canonical-url.ts';

/** Returns every character of an encoding of one or two bytes, with its bytes, except those with a backslash as one byte. */
function tableOf(encoding: string): Map<string, string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const table = new Map<string, string>();
  const add = (...bytes: number[]): void => {
    try {
      const character = decoder.decode(Uint8Array.from(bytes));
      if ([...character].length !== 1 || table.has(character)) return;
      table.set(character, bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''));
    } catch {
      // Not a character.
    }
  };
  for (let byte = 0x80; byte < 0x100; byte++) add(byte);
  for (let lead = 0x81; lead < 0xff; lead++)
    for (let trail = 0x40; trail < 0xff; trail++) if (trail !== 0x5c) add(lead, trail);
  return table;
}

function encode(word: string, table: ReadonlyMap<string, string>): string {
  return [...word]
    .map((character) => {
      if (character < '\u0080') return character;
      const bytes = table.get(character);
      if (bytes === undefined) throw new Error(`${character} cannot be encoded`);
      return bytes;
    })
    .join('');
}

function isTraversal(path: string): boolean {
  const url = parseUrl(`https://example.org${path}`);
  if (typeof url === 'string' || url === undefined) throw new Error(`no URL: ${path}`);
  return (url.spelling & SPELLING.encoded_traversal) !== 0;
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  gbk: ['质量', '数量', '力量', '流量', '能量', '量', '力', '良', '大喇叭', '喇叭', '喇', '两', '联连', '料.量'],
  'euc-jp': ['成田', '成人', '完成', '作成', '構成', '政治', '行政', '成', '政', '佐々成政', '世', '性', '製'],
  big5: ['講座', '講', '演講', '講師', '嶽'],
  'euc-kr': ['남.북', '유', '윙', '이유', '유머', '유.머', '은행', '자유.', '존재'],
  'windows-1251': [
    'А.С.Пушкин',
    'г.Москва',
    'т.е.',
    'и.о.',
    'А.',
    'Б.',
    'и т.д.',
    'Бін',
    'нет..',
    'Д..',
    '.рф',
    'Эх...',
  ],
  'koi8-r': ['А.С.Пушкин', 'г.Москва', 'т.е.', 'и.о.', 'ю.', 'а.'],
  'iso-8859-5': ['А.С.Пушкин', 'г.Москва', 'т.е.', 'и.о.'],
  'iso-8859-1': ['é.', 'É.', 'à.é.', 'Ö.B.', 'ß', 'é..', '¿qué?'],
  'iso-8859-2': ['ż.', 'ł.', 'Ł.Ó.', 'ś.p.', 'č.'],
  'windows-1253': ['Α.Ε.', 'Ο.Τ.Ε.', 'κ.', 'Ά.'],
  'windows-1254': ['Ş.', 'İ.Ö.', 'ö.'],
  'windows-1255': ['א.', 'א.ב.', 'ת.ד.', 'ב.מ.'],
  'windows-1256': ['د.', 'م.ع', 'ص.ب.'],
  'windows-874': ['พ.ศ.', 'ม.', 'ภ.', 'น.ส.', 'กทม.'],
};

describe('a path in an encoding older than UTF-8', () => {
  it.each(Object.entries(WORDS))('hides no dot segment: %s', (encoding, words) => {
    const table = tableOf(encoding);
    const paths = words.flatMap((word) => {
      const text = encode(word, table);
      return [`/${text}`, `/keyword/${text}/`, `/a-${text}.html`, `/keyword/${text}/x.y`, `/${text}/${text}`];
    });
    expect(paths.filter(isTraversal)).toEqual([]);
  });

  it.each(['gbk', 'euc-jp', 'big5', 'euc-kr'])('hides none in any of its characters: %s', (encoding) => {
    const table = tableOf(encoding);
    expect(table.size).toBeGreaterThan(5000);
    const hiding = [...table].filter(([, text]) => isTraversal(`/${text}`) || isTraversal(`/x/a${text}b/`));
    // In GBK, old servers take one rare character for a backslash.
    expect(hiding.map(([character]) => character)).toEqual(encoding === 'gbk' ? ['翜'] : []);
  });

  it.each(['/%D6%CA%C1%BF', '/keyword/%C0%AE%C5%C4', '/%C0.%D1.%CF%F3%F8%EA%E8%ED', '/%B3%B2.%BA%CF', '/%E9.'])(
    'hides none: %s',
    (path) => {
      expect(isTraversal(path)).toBe(false);
    },
  );
});

describe('a path that only looks like one', () => {
  it.each([
    '/v1/..%c0%afadmin',
    '/v1/..%e0%80%afadmin',
    '/%c0%ae%c0%ae/x',
    '/x/%c0%ae%c0%ae%c0%afy',
    '/x/%c0%ae./y',
    '/x/.%c0%ae/y',
    '/..%c1%9c..',
    '/x%c1%9cy',
    '/x/..%c0%af..%c0%afy',
    '/x/..%c0%2fy',
    '/x/..%ff/y',
    '/x/..%ff%fe/y',
    '/x/.%ff./y',
    '/%C3%A9/..%c0%afx',
    '/%C3%A9%c0%af../x',
    // Junk elsewhere in the path makes no difference.
    '/%ff/..%c0%afx/%D6%CA%C1%BF',
  ])('is detected: %s', (path) => {
    expect(isTraversal(path)).toBe(true);
  });
});
