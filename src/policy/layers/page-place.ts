/** The cheap look at a page's text: whether it can be the page that a request is on. */
import { isPlainPath } from '../../domain/canonical-url.ts';
import { isPlainHost } from '../../domain/host-key.ts';

/** Where a request goes, as the texts of pages are compared with it. */
export class Place {
  readonly #host: string;
  /** Folded, in every form. */
  readonly #paths: readonly string[];
  /** How most pages of the host begin. */
  readonly #origin: string;
  /** The text that was looked at last, and where in it the origin stands next: pages lie one behind the other in one text. */
  #text = '';
  #originAt = -1;

  constructor(host: string, paths: readonly string[]) {
    this.#host = host;
    this.#paths = paths;
    this.#origin = `https://${host}`;
  }

  /**
   * Whether the page that `text` is from `start` up to `end` can be the one, by its text alone: a cheap no for most pages, and never a
   * wrong one where the page is in the URL standard's own spelling, as an index has it.
   */
  mayBeOn(text: string, start: number, end: number): boolean {
    let hostEnd = start + this.#origin.length;
    if (!isHostEnd(text, hostEnd, end) || !this.#isOriginAt(text, start)) {
      const schemeEnd = schemeEndOf(text, start, end);
      if (schemeEnd < 0) return true;
      hostEnd = hostEndOf(text, schemeEnd, end, this.#host);
      if (hostEnd < 0) return !isOtherPlainHost(text, schemeEnd, end);
    }
    for (let at = 0; at < this.#paths.length; at++) if (mayBePath(text, hostEnd, end, this.#paths[at]!)) return true;
    return false;
  }

  /** Whether the origin is known to stand there. One search finds the next: comparing character by character takes longer. */
  #isOriginAt(text: string, start: number): boolean {
    if (text !== this.#text || (this.#originAt >= 0 && this.#originAt < start)) {
      this.#text = text;
      this.#originAt = text.indexOf(this.#origin, start);
    }
    return this.#originAt === start;
  }
}

function schemeEndOf(text: string, start: number, end: number): number {
  const schemeEnd = text.startsWith('https://', start) ? start + 8 : text.startsWith('http://', start) ? start + 7 : -1;
  return schemeEnd > end ? -1 : schemeEnd;
}

/** Where a host that stands in front of a path, perhaps with `www.`, ends; -1 where another one stands there. */
function hostEndOf(text: string, start: number, end: number, host: string): number {
  const hostStart = text.startsWith('www.', start) && !host.startsWith('www.') ? start + 4 : start;
  const hostEnd = hostStart + host.length;
  return isHostEnd(text, hostEnd, end) && text.startsWith(host, hostStart) ? hostEnd : -1;
}

function isHostEnd(text: string, at: number, end: number): boolean {
  return at === end || (at < end && text.charCodeAt(at) === 0x2f);
}

/** Whether a page with the path from `start` up to `end` can be the one. `path` is the request's, folded. */
function mayBePath(text: string, start: number, end: number, path: string): boolean {
  for (let at = start, own = 0; at < end; at++, own++) {
    const code = text.charCodeAt(at);
    if (code === 0x3f || code === 0x23) return true;
    if (code === 0x25 || code === 0x3b || code === 0x5c || code > 0x7e) return true;
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    const ownCode = own < path.length ? path.charCodeAt(own) : 0;
    if (lower === ownCode) continue;
    // The letter without its accent, which the page may have as an escape of its own.
    if (ownCode > 0x7e) return true;
    // Slashes and dots may be folded away.
    if (lower === 0x2f && own === path.length) {
      return !isFurtherSegment(text, at + 1, end) || !isPlainPath(text, start, end);
    }
    return lower === 0x2f || lower === 0x2e || code <= 0x20;
  }
  return true;
}

/** Whether a segment begins at `at` that no folding takes away and that is no file that may stand for its folder (`index`, `default`). */
function isFurtherSegment(text: string, at: number, end: number): boolean {
  if (at >= end) return false;
  const first = text.charCodeAt(at) | 0x20;
  if (first < 0x61 || first > 0x7a) return false;
  const second = text.charCodeAt(at + 1) | 0x20;
  return !(first === 0x69 && second === 0x6e) && !(first === 0x64 && second === 0x65);
}

/** Whether a page's host is written canonically, so that it is another one than any it does not equal. */
function isOtherPlainHost(text: string, start: number, end: number): boolean {
  if (text.startsWith('www.www.', start)) return false;
  const slash = text.indexOf('/', start);
  return isPlainHost(text, start, slash < 0 || slash > end ? end : slash);
}
