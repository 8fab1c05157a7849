/** Languages at the start of a path: `/en/login`, `/pt-BR/login`, `/us/en/login` are forms of `/login`. */
import { HYPHEN, SEMICOLON, SLASH, UNDERSCORE } from '../../bytes/ascii.ts';
import { isLanguage } from '../../record/language-codes.ts';

/** A country and a language. */
const CODES_MAX = 2;

/**
 * Returns where a path begins after its leading slashes and a language. A country alone does not count, because news sites have sections
 * with such names.
 */
export function afterLanguage(path: string): number {
  const first = afterSlashes(path, 0);
  let start = first;
  let hasLanguage = false;
  for (let codes = 0; codes < CODES_MAX; codes++) {
    const end = codeEnd(path, start);
    if (end < 0) break;
    hasLanguage ||= end - start > 2 || isLanguage(path.slice(start, end).toLowerCase());
    const slash = path.indexOf('/', end);
    start = slash < 0 ? path.length : afterSlashes(path, slash);
  }
  return hasLanguage ? start : first;
}

function afterSlashes(path: string, start: number): number {
  let at = start;
  while (at < path.length && path.charCodeAt(at) === SLASH) at++;
  return at;
}

/**
 * Returns where the code ends that is the whole segment at `start`, apart from parameters: two letters, or a language with its country or
 * script; -1 if there is none.
 */
function codeEnd(path: string, start: number): number {
  if (!areLetters(path, start, start + 2)) return -1;
  if (start + 2 === path.length) return path.length;
  const sign = path.charCodeAt(start + 2);
  if (sign !== HYPHEN && sign !== UNDERSCORE) return isEnd(path, start + 2) ? start + 2 : -1;
  for (const length of [2, 4])
    if (areLetters(path, start + 3, start + 3 + length) && isEnd(path, start + 3 + length)) return start + 3 + length;
  return -1;
}

function isEnd(path: string, at: number): boolean {
  if (at >= path.length) return true;
  const code = path.charCodeAt(at);
  return code === SLASH || code === SEMICOLON;
}

function areLetters(path: string, start: number, end: number): boolean {
  if (end > path.length) return false;
  for (let at = start; at < end; at++) {
    const lower = path.charCodeAt(at) | 0x20;
    if (lower < 0x61 || lower > 0x7a) return false;
  }
  return true;
}
