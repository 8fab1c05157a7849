/** A cheap filter on the text of a page's URL: whether a request can be on that page. */
import { DOT, SLASH } from '../../bytes/ascii.ts';
import { isPlainPath } from '../../domain/canonical-url.ts';
import { DIGITS, isDigit, isIn, LOWER, tableOf } from '../url/characters.ts';

/** Buffer for pages that are strings. */
const scratch = new Uint8Array(4_096);

/** Results of a host comparison, in place of the length of scheme and host. */
const HOST = {
  /** Another host than the request's. */
  other: -1,
  /** Not in the URL standard's canonical spelling, so it may still be the request's host. */
  unclear: -2,
} as const;

/** The host and paths of a request, prepared for the comparison with pages. */
export class RequestPlace {
  readonly #target: { readonly host: string; readonly paths: readonly string[] };
  readonly #hasWww: boolean;
  /** Length of scheme and host of the previous page, or one of {@link HOST}. */
  #origin: number = HOST.unclear;
  /** Scheme, host and slash of the previous string; empty if there is none. */
  #originText = '';

  /** @param target host of the request and all folded forms of its path; `paths` is read only if a page is on the host */
  constructor(target: { readonly host: string; readonly paths: readonly string[] }) {
    this.#target = target;
    this.#hasWww = target.host.startsWith('www.');
  }

  /** Like {@link mayBeOn} for a string. Returns true, which means a closer look, if the string is long or not ASCII. */
  mayBeOnText(url: string): boolean {
    // Most pages of a record have the same host.
    const isHostOfBefore = this.#originText !== '' && url.startsWith(this.#originText);
    if (isHostOfBefore && this.#origin === HOST.other) return false;
    if (url.length > scratch.length) return true;
    // For a short string, a loop is faster than a call that copies it.
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
   * Whether the request can be on the page whose URL is `bytes[start, end)`. Looks only at the bytes: this rejects most pages cheaply. A
   * page in the URL standard's canonical spelling, which every index stores, is never rejected wrongly. `isHostOfBefore`: scheme and host
   * are those of the previous page.
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

  /** Returns the length of scheme and host if the host, perhaps after `www.`, is the request's; otherwise one of {@link HOST}. */
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

/** Returns the offset after a page's scheme and `://`; -1 if the scheme is neither http nor https. */
function schemeEndOf(bytes: Uint8Array, start: number, end: number): number {
  const size = standsAt(SECURE, bytes, start) ? SECURE.length : standsAt(PLAIN, bytes, start) ? PLAIN.length : -1;
  return size < 0 || start + size > end ? -1 : start + size;
}

function standsAt(text: string, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}

/** Whether a page whose path is `bytes[start, end)` can be the request's page. `path` is the request's folded path. */
function mayBePath(bytes: Uint8Array, start: number, end: number, path: string): boolean {
  for (let at = start, pathAt = 0; at < end; at++, pathAt++) {
    const code = bytes[at]!;
    if (code === 0x3f || code === 0x23) return true;
    if (code === 0x25 || code === 0x3b || code === 0x5c || code > 0x7e) return true;
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    const pathCode = pathAt < path.length ? path.charCodeAt(pathAt) : 0;
    if (lower === pathCode) continue;
    // The page may have the plain letter here, and its accent as a separate percent escape.
    if (pathCode > 0x7e) return true;
    if (!isIn(NO_SIGN, lower)) return endsInSigns(bytes, at, end);
    // Folding may have removed slashes and dots.
    if (lower === 0x2f && pathAt === path.length) {
      return !isFurtherSegment(bytes, at + 1, end) || !isPlainPath(bytes, start, end);
    }
    return lower === 0x2f || lower === 0x2e || code <= 0x20;
  }
  return true;
}

/** Whether a page's path may end at or before `start`: only signs follow, which are not part of the path. */
function endsInSigns(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = bytes[at]!;
    if (code === 0x3f || code === 0x23 || code === 0x25 || code === 0x3b || code > 0x7e) return true;
    if (isIn(LETTERS, code | 0x20) || isDigit(code)) return false;
  }
  return true;
}

/** Whether a segment begins at `at` that folding keeps and that cannot be an index file (`index`, `default`, `amp`). */
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
 * Whether the host that begins at `start` is in the URL standard's canonical spelling, so that a different text is a different host. All
 * characters must be lower-case letters, digits, dots, hyphens or underscores, and the last label must begin with a letter. Returns false
 * for more than one leading `www.`.
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
