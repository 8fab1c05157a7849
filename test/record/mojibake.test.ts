/** Names whose bytes were decoded in another encoding: detected for every letter, and no real name is taken for one. */
import { domainToUnicode } from 'node:url';
import { describe, expect, it } from 'vitest';
import { keyFromHost } from '../../src/domain/host-key.ts';
import { parseEntry } from '../../src/record/entry.ts';

const windows1252 = new TextDecoder('windows-1252');
const garble = (text: string): string => windows1252.decode(Buffer.from(text));

function reasonOf(domain: string): string | undefined {
  return parseEntry(Buffer.from(JSON.stringify({ domain }))).rejects[0]?.reason;
}

/** Letters of names, by the first byte of their encoding. */
const LETTERS: readonly (readonly [string, string])[] = [
  ['of two bytes', 'àáâãäåæçèéêëìíîïñòóôõöøùúûüýþßÿāăąćčďđēęěğģīįłńňőœřśşšťūůűźżžșț'],
  ['Greek', 'αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ'],
  ['Cyrillic', 'абвгдежзийклмнопрстуфхцчшщъыьэюяёђєіїјљњћўџґ'],
  ['Vietnamese', 'ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ'],
  ['Georgian', 'აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ'],
  ['Japanese', 'あいうえおかきくけこアイウエオカキクケコマナ東京日本'],
  ['Chinese and Korean', '的一是不了人我在有他这中大来上国北海한국어가나다라'],
];

describe('a name that was decoded as Windows-1252', () => {
  it.each(LETTERS)('is rejected, for every letter: those %s', (_name, letters) => {
    for (const letter of letters) {
      for (const name of [`stra${letter}e.de`, `${letter}.de`, `a${letter}`.concat('.de')]) {
        const garbled = garble(name);
        // If the host parser accepts it, it is detected; in lower case, too, if that is possible.
        expect([name, garbled, reasonOf(garbled) === undefined]).toEqual([name, garbled, false]);
        if (!('problem' in keyFromHost(garbled))) expect(reasonOf(garbled)).toBe('domain_mojibake');
      }
    }
  });

  it.each(['ƒ', 'Š', 'Œ', 'Ž', 'š', 'œ', 'ž', 'Ÿ'])('is detected if it ends in %s', (letter) => {
    for (const lead of ['Ã', 'Ð', 'Ù']) expect(reasonOf(`a${lead}${letter}b.de`)).toBe('domain_mojibake');
  });

  it('is detected in lower case', () => {
    for (const name of ['straße.de', 'εταιρεία.gr', 'пример.com', 'köln.de', 'tūris.lv', 'ağaç.com']) {
      expect([name, reasonOf(garble(name).toLowerCase())]).toEqual([name, 'domain_mojibake']);
    }
  });
});

describe('a name', () => {
  it.each([
    'příšera.cz',
    'Úžas.cz',
    'ÚŽASNÝ.CZ',
    'míša.sk',
    'MÍŠA.SK',
    'kéž.cz',
    'väž.sk',
    'čšž.si',
    'ääšš.fi',
    'õž.ee',
    'cœur.fr',
    'bœuf.fr',
    'crème-brûlée.fr',
    'col·lecció.cat',
    'ñandú.es',
    'größe.de',
    'øl.dk',
    'þór.is',
    'żółw.pl',
    'ŠKODA.CZ',
  ])('%s is accepted', (domain) => {
    expect(reasonOf(domain)).toBeUndefined();
  });

  it('in punycode is accepted unchanged, whatever it spells', () => {
    // A domain can be registered like that.
    expect(domainToUnicode('xn--mlarevisby-xla75e.se')).toBe('mã¥larevisby.se');
    expect(reasonOf('xn--mlarevisby-xla75e.se')).toBeUndefined();
  });
});
