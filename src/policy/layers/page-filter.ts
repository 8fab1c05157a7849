/** The cheap look at a page's text: whether it can be the page that a request is on. */
import { DOT, SLASH } from '../../bytes/ascii.ts';
import { isPlainPath } from '../../domain/canonical-url.ts';
import { DIGITS, isDigit, isIn, LOWER, tableOf } from '../url/characters.ts';

/** For pages that come as texts. */
const scratch = new Uint8Array(4_096);

/** What is known of a page's scheme and host, instead of how long they are. */
const HOST = {
  /** Another one than the request's. */
  other: -1,
  /** Not written as the URL standard writes it, so that it may be the request's all the same. */
  unclear: -2,
} as const;

/** Where a request goes, as pages are compared with it. */
export class RequestPlace {
  readonly #target: { readonly host: string; readonly paths: readonly string[] };
  readonly #hasWww: boolean;
  /** How long scheme and host are of the page that was looked at last, or one of {@link HOST}. */
  #origin: number = HOST.unclear;
  /** Scheme, host and slash of the text that was looked at last; empty where it has none. */
  #originText = '';

  /** @param target its host, and its paths in every form, folded; they are read where a page stands on the host */
  constructor(target: { readonly host: string; readonly paths: readonly string[] }) {
    this.#target = target;
    this.#hasWww = target.host.startsWith('www.');
  }

  /** The same as {@link mayBeOn} for a text, which takes a closer look where it is long or not ASCII. */
  mayBeOnText(url: string): boolean {
    // Pages of one record mostly stand on one host.
    const isHostOfBefore = this.#originText !== '' && url.startsWith(this.#originText);
    if (isHostOfBefore && this.#origin === HOST.other) return false;
    if (url.length > scratch.length) return true;
    // A loop over a short text takes less than one call that copies it.
    for (let at = 0; at < url.length; at++) {
      const code = url.charCodeAt(at);
      if (code > 0x7e) return true;
      scratch[at] = code;
    }
    const mayBe = this.mayBeOn(scratch, 0, url.length, isHostOfBefore);
    if (!isHostOfBefore) this.#originText = url.slice(0, url.indexOf('/', SECURE.length) + 1);
    return mayBe;
  }

  /**
   * Whether the page that stands in `bytes` from `start` up to `end` can be the one, by its bytes alone: a cheap no for most pages, and
   * never a wrong one where the page is in the URL standard's own spelling, as an index has it. `isHostOfBefore`: scheme and host are those
   * of the page that was looked at last.
   */
  mayBeOn(bytes: Uint8Array, start: number, end: number, isHostOfBefore = false): boolean {
    if (!isHostOfBefore) {
      this.#origin = this.#originOf(bytes, start, end);
      this.#originText = '';
    }
    if (this.#origin < 0) return this.#origin === HOST.unclear;
    const hostEnd = start + this.#origin;
    const { paths } = this.#target;
    for (let at = 0; at < paths.length; at++) if (mayBePath(bytes, hostEnd, end, paths[at]!)) return true;
    return false;
  }

  /** How long scheme and host are where the host, perhaps behind `www.`, is the request's; else one of {@link HOST}. */
  #originOf(bytes: Uint8Array, start: number, end: number): number {
    const { host } = this.#target;
    const schemeEnd = schemeEndOf(bytes, start, end);
    if (schemeEnd < 0) return HOST.unclear;
    const hostStart = !this.#hasWww && standsAt(WWW, bytes, schemeEnd) ? schemeEnd + WWW.length : schemeEnd;
    const hostEnd = hostStart + host.length;
    const isEnd = hostEnd === end || (hostEnd < end && bytes[hostEnd] === SLASH);
    if (isEnd && standsAt(host, bytes, hostStart)) return hostEnd - start;
    return isCanonicalHost(bytes, schemeEnd, end) ? HOST.other : HOST.unclear;
  }
}

const WWW = 'www.';
const WWW_TWICE = 'www.www.';
const IN_HOST = tableOf(`${LOWER}${DIGITS}-_`);
const NO_SIGN = tableOf(`${LOWER}${DIGITS}./`);
const LETTERS = tableOf(LOWER);
const SECURE = 'https://';
const PLAIN = 'http://';

/** Where the scheme of a page ends; -1 where it has another one than http and https. */
function schemeEndOf(bytes: Uint8Array, start: number, end: number): number {
  const size = standsAt(SECURE, bytes, start) ? SECURE.length : standsAt(PLAIN, bytes, start) ? PLAIN.length : -1;
  return size < 0 || start + size > end ? -1 : start + size;
}

function standsAt(text: string, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}

/** Whether a page with the path from `start` up to `end` can be the one. `path` is the request's, folded. */
function mayBePath(bytes: Uint8Array, start: number, end: number, path: string): boolean {
  for (let at = start, own = 0; at < end; at++, own++) {
    const code = bytes[at]!;
    if (code === 0x3f || code === 0x23) return true;
    if (code === 0x25 || code === 0x3b || code === 0x5c || code > 0x7e) return true;
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    const ownCode = own < path.length ? path.charCodeAt(own) : 0;
    if (lower === ownCode) continue;
    // The letter without its accent, which the page may have as an escape of its own.
    if (ownCode > 0x7e) return true;
    if (!isIn(NO_SIGN, lower)) return endsInSigns(bytes, at, end);
    // Slashes and dots may be folded away.
    if (lower === 0x2f && own === path.length) {
      return !isFurtherSegment(bytes, at + 1, end) || !isPlainPath(bytes, start, end);
    }
    return lower === 0x2f || lower === 0x2e || code <= 0x20;
  }
  return true;
}

/** Whether a page's path may end at `at`, or before it: signs at its end are no part of it. */
function endsInSigns(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = bytes[at]!;
    if (code === 0x3f || code === 0x23 || code === 0x25 || code === 0x3b || code > 0x7e) return true;
    if (isIn(LETTERS, code | 0x20) || isDigit(code)) return false;
  }
  return true;
}

/** Whether a segment begins at `at` that no folding takes away and that may not stand for its folder (`index`, `default`, `amp`). */
function isFurtherSegment(bytes: Uint8Array, at: number, end: number): boolean {
  if (at >= end) return false;
  const first = bytes[at]! | 0x20;
  if (first < 0x61 || first > 0x7a) return false;
  const second = at + 1 < end ? bytes[at + 1]! | 0x20 : 0;
  return !isPair(first, second, 'in') && !isPair(first, second, 'de') && !isPair(first, second, 'am');
}

function isPair(first: number, second: number, letters: string): boolean {
  return first === letters.charCodeAt(0) && second === letters.charCodeAt(1);
}

/**
 * Whether the host that begins at `start` stands there as the URL standard writes it, so that it is another one than any that it does not
 * equal: letters, digits and inner signs in a last label that begins as a name does. More than one `www.` is left out of the comparison.
 */
function isCanonicalHost(bytes: Uint8Array, start: number, end: number): boolean {
  if (standsAt(WWW_TWICE, bytes, start)) return false;
  let labelStart = start;
  let at = start;
  for (; at < end && bytes[at] !== SLASH; at++) {
    const code = bytes[at]!;
    if (code === DOT) labelStart = at + 1;
    else if (!isIn(IN_HOST, code)) return false;
  }
  return at > labelStart && isIn(LETTERS, bytes[labelStart]!);
}
