import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEncodedTwice, percentDecodeOnce } from '../../src/domain/percent-decode.ts';

const percent = (...bytes: number[]): string => bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

/** Returns a code in UTF-8 with exactly this number of bytes, which may be more than necessary. */
function inBytes(code: number, length: number): string {
  const bytes: number[] = [];
  let rest = code;
  for (let at = 1; at < length; at++) {
    bytes.unshift(0x80 | (rest & 0x3f));
    rest = Math.floor(rest / 64);
  }
  const lead = (0xff << (8 - length)) & 0xff;
  return percent(lead | rest, ...bytes);
}

describe('decoding once', () => {
  it.each([
    ['%u006cogin', 'login'],
    ['%U006C', 'l'],
    ['%u4e2d%u6587', '中文'],
    ['%uD83D%uDE00', '😀'],
    ['%uD83D', '\ufffd'],
    ['%uD83D%u0041', '\ufffdA'],
    ['%uD83D-uDE00', '\ufffd-uDE00'],
    ['%uDE00%uD83D', '\ufffd\ufffd'],
    ['%u00e9%c3%a9', 'éé'],
    ['%u006', '%u006'],
    ['%u00zz', '%u00zz'],
    ['%u', '%u'],
    ['%', '%'],
    ['%25u006c', '%u006c'],
    ['%c1%acogin', 'login'],
    ['%C0%AE%c0%ae%c0%af', '../'],
    ['/%c0%ae%c1%ac/', '/.l/'],
    ['%f4%90%80%80%c0%af', '\ufffd'.repeat(6)],
    ['%ed%a0%80%c0%af', '\ufffd'.repeat(5)],
    ['%f8%80%9f%98%80%c0%af', '\ufffd'.repeat(7)],
    ['%c0%ae', '\ufffd\ufffd'],
    ['/%c0%ae', '/\ufffd\ufffd'],
    ['%c0%ae/', '\ufffd\ufffd/'],
    ['%e0%81%ac', 'l'],
    ['%e0%83%a9', 'é'],
    ['%f0%80%80%af', '/'],
    ['%f0%82%82%ac', '€'],
    ['%f8%80%80%80%af', '/'],
    ['%fc%80%80%80%80%af', '/'],
    ['%c0', '\ufffd'],
    ['%c0%2f', '\ufffd/'],
    ['%c0a', '\ufffda'],
    ['%ed%a0%80', '\ufffd\ufffd\ufffd'],
    ['%D6%CA%C1%BF', '\ufffd\ufffd\ufffd\ufffd'],
    ['%c1%bf', '\ufffd\ufffd'],
    ['%c1%a6%c1%bf', '\ufffd\ufffd\ufffd\ufffd'],
    ['%c0%ae%c5%c4', '\ufffd\ufffd\ufffd\ufffd'],
    ['/%c0%ae/', '/\ufffd\ufffd/'],
    ['/%c0%ae%c0%ae/', '/../'],
    ['/%c3%a9%c1%ac/', '/él/'],
    ['%ff/%c1%ac', '\ufffd/l'],
    ['%fe%ff', '\ufffd\ufffd'],
    ['%f4%90%80%80', '\ufffd\ufffd\ufffd\ufffd'],
  ])('%j is %j', (text, expected) => {
    expect(percentDecodeOnce(text)).toBe(expected);
  });

  it('decodes a character in as many bytes as it needs, or more, and as a UTF-16 escape', () => {
    for (const code of [0x25, 0x2d, 0x2e, 0x2f, 0x39, 0x41, 0x5c, 0x5f, 0x6c]) {
      const character = String.fromCodePoint(code);
      for (let length = 2; length <= 6; length++)
        expect(percentDecodeOnce(`x${inBytes(code, length)}`)).toBe(`x${character}`);
    }
    for (const code of [0x80, 0xe9, 0x7ff])
      for (let length = 2; length <= 6; length++)
        expect(percentDecodeOnce(inBytes(code, length))).toBe(String.fromCodePoint(code));
    for (const code of [0x800, 0x20ac, 0xfffd])
      for (let length = 3; length <= 6; length++)
        expect(percentDecodeOnce(inBytes(code, length))).toBe(String.fromCodePoint(code));
  });

  it('decodes valid UTF-8 as the standard does, next to other escapes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        const whole = text.toWellFormed();
        expect(percentDecodeOnce(encodeURIComponent(whole))).toBe(whole);
        expect(percentDecodeOnce(`${encodeURIComponent(whole)}%u0041`)).toBe(`${whole}A`);
        expect(percentDecodeOnce(`${encodeURIComponent(whole)}%ff`)).toBe(`${whole}\ufffd`);
        // The same result as the platform's own function for these escapes, except for lone surrogates.
        expect(percentDecodeOnce(`%u0041${escape(whole.replace(/[\u0080-\u00ff]/g, ''))}`)).toBe(
          `A${whole.replace(/[\u0080-\u00ff]/g, '')}`,
        );
      }),
      { numRuns: 2000, seed: 3 },
    );
  });

  it('takes time in proportion to the length', () => {
    // Quadratic time would take an hour, and the test would time out.
    for (const part of ['%c1%ac', '%c0%af', '%c1%ff', '%c1', '%fc%80', '%c1%aca', '%c3%a9']) {
      const text = part.repeat(400_000);
      expect(percentDecodeOnce(`${text}%ff`)).toMatch(/\ufffd$/);
      expect(percentDecodeOnce(`a${text}`)).toMatch(/^a/);
    }
  });

  it('detects a remaining escape', () => {
    expect(['%25u006c', '%2541', '%%34%31', '%%75006c', '%c0%a541'].map((text) => isEncodedTwice(text))).toEqual(
      Array(5).fill(true),
    );
    expect(['%25', '%25u00', 'a%20b', '%u0041', 'plain', '%c0%ae'].map((text) => isEncodedTwice(text))).toEqual(
      Array(6).fill(false),
    );
  });
});
