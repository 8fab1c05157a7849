/** What the value of a query parameter says. */
import { beginsQuery, nameEnd, staticDot, withoutLooseSigns, withoutSigns } from './segments.ts';
import type { TokenIndex } from './tokens.ts';

/**
 * Token lists that a value, or one of its parts between slashes, colons and dots, is in; signs at its end make no difference. `mayBeId`: it
 * may be the id of a program.
 */
export function listsOfValue(signed: string, tokens: TokenIndex, mayBeId: boolean): readonly number[] {
  const value = withoutLooseSigns(signed);
  const whole = tokens.findName(value, 0, nameEnd(value, 0, value.length));
  if (mayBeId && isProgramId(value)) return whole;
  const fileDot = staticDot(value);
  let all: Set<number> | undefined;
  for (let start = 0, at = 0; at <= value.length; at++) {
    if (at < value.length && (at === fileDot || !isSeparator(value, at))) continue;
    if (at > start && at - start < value.length) {
      const part = tokens.findName(value, start, at);
      if (part.length > 0) {
        all ??= new Set(whole);
        for (const list of part) all.add(list);
      }
    }
    start = at + 1;
  }
  return all === undefined ? whole : [...all];
}

/** Whether a value can be nothing but a path of the same site: `user/login`, but not `either/or of two`, nor an address. */
export function isPath(value: string): boolean {
  return value.includes('/') && !/[\s:.]/.test(withoutSigns(value));
}

/** Whether a value is a day, in one of the common orders. */
export function isDate(value: string): boolean {
  return /^(?:[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./])[0-9]{1,2}\2[0-9]{4}|20[0-9]{6})[^\p{L}\p{N}]*$/u.test(
    value,
  );
}

/** Whether a value is the id of a program as app stores write it, a domain read backwards: `com.example.settings`. */
function isProgramId(value: string): boolean {
  return /^(?:com|org|net|io)(?:\.[a-z][a-z0-9_]*)+$/i.test(value);
}

/** Whether a character parts the words of a value: slash, backslash, colon, dot, bar, comma, and what begins a query. */
function isSeparator(value: string, at: number): boolean {
  if (beginsQuery(value, at, value.length)) return true;
  const code = value.charCodeAt(at);
  return code === 0x2f || code === 0x5c || code === 0x3a || code === 0x2e || code === 0x7c || code === 0x2c;
}
