/** The page-type layer: a URL against the verified pages of its domain. */
import { type CanonicalUrl, isPlainPath, parseUrl, queryMarkIn } from '../domain/canonical-url.ts';
import { isPlainHost } from '../domain/normalize.ts';
import { pageTypeOrdinal } from '../record/vocabulary.ts';
import { fragmentRoute, looseRoute } from './facts.ts';
import { eachParameter, wholeQuery } from './parameters.ts';
import { nameEnd } from './segments.ts';
import type { TokenIndex } from './tokens.ts';
import { comparableHost, type Evidence, isRead, type PageEvidence, type Request, type Verdict } from './types.ts';

/** What the policy says about one page type. */
export interface PageTypePolicy {
  readonly verdict: Verdict;
  readonly order: number;
}

export interface PageLayer {
  readonly types: ReadonlyMap<string, PageTypePolicy>;
  readonly tokens: TokenIndex;
  /** Token lists that tell a page's purpose, for each list whether it does. */
  readonly telling: Uint8Array;
  /** Token list of the query names that tell nothing about which page it is. */
  readonly ignoredNames: number;
}

/** A verified page that the request is on. */
export interface PageMatch {
  readonly verdict: Verdict;
  readonly url: string;
  readonly length: number;
  readonly order: number;
}

const RANK = { deny: 2, flag: 1, allow: 0 } as const;

/** The order of the types for a policy: the vocabulary's, then the policy's own. */
export function pageTypeOrder(name: string, position: number): number {
  return pageTypeOrdinal(name) ?? 1000 + position;
}

/** The verified page that decides: deny before flag before allow, then the longest path, then vocabulary order. */
export function matchPages(
  layer: PageLayer,
  request: Request,
  host: string,
  evidence: Evidence,
): PageMatch | undefined {
  let place: Place | undefined;
  const mayMatter = (text: string, start: number, end: number): boolean => {
    place ??= new Place(host, request.url.decodedPath);
    return place.mayBeOn(text, start, end);
  };
  const pages = evidence.pages(mayMatter);
  let best: PageMatch | undefined;
  const visit = (page: PageEvidence): void => {
    if (mayMatter(page.url, 0, page.url.length)) best = better(best, matchPage(layer, request, host, page));
  };
  if (Array.isArray(pages)) for (let at = 0; at < pages.length; at++) visit(pages[at] as PageEvidence);
  else for (const page of pages) visit(page);
  return best;
}

function better(best: PageMatch | undefined, match: PageMatch | undefined): PageMatch | undefined {
  if (best === undefined || match === undefined) return best ?? match;
  const rank = RANK[match.verdict.verdict] - RANK[best.verdict.verdict];
  if (rank !== 0) return rank > 0 ? match : best;
  if (match.length !== best.length) return match.length > best.length ? match : best;
  return match.order < best.order ? match : best;
}

const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;

/**
 * A decoded path as pages are compared: lower case, letters composed with their accents (NFC), nothing invisible, repeated slashes as
 * one, no parameters of segments (`;…`), no blanks and control characters around a segment, no dots at its end, and no slash at the end
 * of the path (the root is empty).
 */
function foldPath(decodedPath: string): string {
  let path = decodedPath.toLowerCase();
  if (hasFoldedEnds(path)) path = path.replace(INVISIBLE, '').normalize('NFC').split('/').map(foldSegment).join('/');
  if (path.includes('//')) path = path.replace(/\/{2,}/g, '/');
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Whether a segment has parameters, or may end in what is folded away. A dot within a name is the ordinary case, and none. */
function hasFoldedEnds(path: string): boolean {
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at);
    if (code === 0x3b || code <= 0x20 || code > 0x7e) return true;
    if (code === 0x2e && (at + 1 === path.length || path.charCodeAt(at + 1) === 0x2f)) return true;
  }
  return false;
}

/** A segment without its parameters, and without what servers drop at the ends of a name. Cut by hand, so that it stays linear. */
function foldSegment(segment: string): string {
  const semicolon = segment.indexOf(';');
  let end = semicolon < 0 ? segment.length : semicolon;
  while (end > 0 && (segment.charCodeAt(end - 1) === 0x2e || isBlank(segment.charCodeAt(end - 1)))) end--;
  let start = 0;
  while (start < end && isBlank(segment.charCodeAt(start))) start++;
  return segment.slice(start, end);
}

function isBlank(code: number): boolean {
  return code <= 0x20 || code === 0x7f || (code > 0x7f && /\s/.test(String.fromCharCode(code)));
}

/** Whether a request is on a verified page, and what the policy says about it. */
export function matchPage(layer: PageLayer, request: Request, host: string, page: PageEvidence): PageMatch | undefined {
  const type = layer.types.get(page.type);
  if (type === undefined) return undefined;
  const url = parseUrl(page.url);
  if (url === undefined || comparableHost(url.host) !== host) return undefined;
  const isMatch = type.verdict.verdict === 'allow' ? isAllowed(layer, request, url) : isOnPage(layer, request, url);
  if (!isMatch) return undefined;
  return { verdict: type.verdict, url: page.url, length: url.path.length, order: type.order };
}

/** Where a request goes, as the texts of pages are compared with it. */
export class Place {
  private readonly host: string;
  /** Folded. */
  private readonly path: string;
  /** The same up to where a query stands in the path; undefined where none does. */
  private readonly shorter: string | undefined;
  /** How most pages of the host begin. */
  private readonly origin: string;
  /** The text that was looked at last, and where in it the origin stands next: pages lie one behind the other in one text. */
  private text = '';
  private originAt = -1;

  constructor(host: string, decodedPath: string) {
    this.host = host;
    this.path = foldPath(decodedPath);
    const mark = queryMarkIn(decodedPath);
    this.shorter = mark < 0 ? undefined : foldPath(decodedPath.slice(0, mark));
    this.origin = `https://${host}`;
  }

  /**
   * Whether the page that `text` is from `start` up to `end` can be the one, by its text alone: a cheap no for most pages, and never a
   * wrong one where the page is in the URL standard's own spelling, as an index has it.
   */
  mayBeOn(text: string, start: number, end: number): boolean {
    let hostEnd = start + this.origin.length;
    if (!isHostEnd(text, hostEnd, end) || !this.isOriginAt(text, start)) {
      const schemeEnd = schemeEndOf(text, start, end);
      if (schemeEnd < 0) return true;
      hostEnd = hostEndOf(text, schemeEnd, end, this.host);
      if (hostEnd < 0) return !isOtherPlainHost(text, schemeEnd, end);
    }
    if (mayBePath(text, hostEnd, end, this.path)) return true;
    return this.shorter !== undefined && mayBePath(text, hostEnd, end, this.shorter);
  }

  /** Whether the origin is known to stand there. One search finds the next: comparing character by character takes longer. */
  private isOriginAt(text: string, start: number): boolean {
    if (text !== this.text || (this.originAt >= 0 && this.originAt < start)) {
      this.text = text;
      this.originAt = text.indexOf(this.origin, start);
    }
    return this.originAt === start;
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

/** Whether a URL is on a page of a type that is not allowed, or below it; also where a query that stands in the path is one. */
function isOnPage(layer: PageLayer, request: Request, page: CanonicalUrl): boolean {
  const { decodedPath, queryMark } = request.url;
  if (isOnPageAt(layer, request, page, foldPath(decodedPath))) return true;
  return queryMark >= 0 && isOnPageAt(layer, request, page, foldPath(decodedPath.slice(0, queryMark)));
}

/** {@link isOnPage} for a folded path. */
function isOnPageAt(layer: PageLayer, request: Request, page: CanonicalUrl, path: string): boolean {
  const pagePath = foldPath(page.decodedPath);
  const folder = foldIndex(pagePath);
  const route = folder === '' ? foldPath(fragmentRoute(page) ?? '') : '';
  if (route !== '' && !isOnRoute(request.url, route)) return false;
  const isSame = isSamePage(path, pagePath, folder);
  const telling = tellingQuery(layer, page, pagePath);
  if (telling !== undefined) return isSame && hasAll(wholeQuery(request.url), telling);
  if (pagePath !== '' && isBelow(path, pagePath)) return true;
  return isSame && (folder !== '' || route !== '' || !tellsPage(layer, wholeQuery(request.url)));
}

/** Whether two folded paths are one page. `folder` is the page's path without the file that stands for it. */
function isSamePage(path: string, pagePath: string, folder: string): boolean {
  // A folder and the file that stands for it are one page; two such files are not.
  if (path === pagePath || path === folder || foldIndex(path) === pagePath) return true;
  return dropExtension(path) === pagePath || dropExtension(pagePath) === path;
}

/** Whether a query has a parameter with a value that can tell one page from another. */
function tellsPage(layer: PageLayer, query: string): boolean {
  let tells = false;
  eachParameter(query, (name, value) => {
    tells ||= value !== '' && !isIgnored(layer, name);
  });
  return tells;
}

/** Whether a parameter of that name never tells which page it is. */
function isIgnored(layer: PageLayer, name: string): boolean {
  return layer.tokens.find(name, 0, name.length).includes(layer.ignoredNames);
}

/** Whether a path is another one, which ends without a slash, or below it on a segment boundary. */
export function isBelow(path: string, top: string): boolean {
  return path.startsWith(top) && (path.length === top.length || path.charCodeAt(top.length) === 0x2f);
}

/** Whether a URL's fragment is a route, folded, that a page's own code follows, or one below it. */
function isOnRoute(url: CanonicalUrl, route: string): boolean {
  const own = looseRoute(url);
  const mark = queryMarkIn(own);
  return isBelow(foldPath(own), route) || (mark > 0 && isBelow(foldPath(own.slice(0, mark)), route));
}

/** Extensions by which sites name the forms of one page; many serve it without one as well. */
const PAGE_EXTENSIONS: ReadonlySet<string> = new Set(
  'html htm xhtml shtml php php3 php4 php5 php7 phtml asp aspx jsp jspx jsf do action cfm cgi pl json xml amp'.split(
    ' ',
  ),
);

/** A folded path without the extension of a page at its end: `/a/enter.php` is `/a/enter`. */
function dropExtension(path: string): string {
  const dot = path.lastIndexOf('.');
  return PAGE_EXTENSIONS.has(path.slice(dot + 1)) ? path.slice(0, dot) : path;
}

/** A folded path without the file at its end that stands for its folder: `/a/index.php` is `/a`. */
function foldIndex(path: string): string {
  const slash = path.lastIndexOf('/');
  const stop = nameEnd(path, slash + 1, path.length);
  const name = path.slice(slash + 1, stop);
  return slash >= 0 && (name === 'index' || (name === 'default' && stop < path.length)) ? path.slice(0, slash) : path;
}

/** Whether a URL is exactly a page that is allowed to be read. */
function isAllowed(layer: PageLayer, request: Request, page: CanonicalUrl): boolean {
  if (!isRead(request.method)) return false;
  if (withoutLastSlash(request.url.decodedPath) !== withoutLastSlash(page.decodedPath)) return false;
  const telling = tellingQuery(layer, page, foldPath(page.decodedPath));
  return telling === undefined || hasAll(request.url.query, telling);
}

export function withoutLastSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The parameters that tell which page it is, where the path does not: `/index.php?page=login`. */
function tellingQuery(layer: PageLayer, page: CanonicalUrl, pagePath: string): Map<string, string> | undefined {
  if (page.query === '' || tellsPurpose(layer, pagePath)) return undefined;
  const parameters = new Map<string, string>();
  eachParameter(page.query, (name, value) => {
    if (!isIgnored(layer, name)) parameters.set(name, value);
  });
  return parameters.size === 0 ? undefined : parameters;
}

/** Whether a segment of the path is a word for what the page is for. */
function tellsPurpose(layer: PageLayer, path: string): boolean {
  for (let start = 1; start < path.length; ) {
    let end = path.indexOf('/', start);
    if (end < 0) end = path.length;
    const lists = layer.tokens.find(path, start, nameEnd(path, start, end));
    if (lists.some((list) => layer.telling[list] === 1)) return true;
    start = end + 1;
  }
  return false;
}

/** Whether a query has every one of the parameters; what else it has does not matter. */
function hasAll(query: string, wanted: ReadonlyMap<string, string>): boolean {
  const missing = new Map(wanted);
  eachParameter(query, (name, value) => {
    if (missing.get(name) === value) missing.delete(name);
  });
  return missing.size === 0;
}
