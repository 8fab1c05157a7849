/** Paths in the form in which they are compared with each other. */
import { parseUrl } from '../../domain/canonical-url.ts';
import { nameEnd, withoutSigns } from './segments.ts';

const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;
/** What folding may change besides capitals: a semicolon, a blank, anything beyond ASCII, a dot at the end of a segment, a second slash. */
const MAY_FOLD = /[^!-:<-~]|\.(?:\/|$)|\/\//;

/**
 * Returns a decoded path in the form in which pages are compared: in lower case, with composed accents (NFC), without invisible characters,
 * segment parameters (`;…`), repeated slashes, blanks and control characters around a segment, dots at its end, and a slash at the end of
 * the path. The root is empty.
 */
export function foldPath(decodedPath: string): string {
  const path = decodedPath.toLowerCase();
  return withoutLastSlash(MAY_FOLD.test(path) ? foldSegments(path) : path);
}

function foldSegments(path: string): string {
  const segments = path.replace(INVISIBLE, '').normalize('NFC').split('/').map(foldSegment);
  return segments.join('/').replace(/\/{2,}/g, '/');
}

/**
 * Returns the folded forms of a path in which some server reads it: as it is, up to a query inside the path (`queryMark`, -1 if there is
 * none), without punctuation at its end, which links in running text collect, and without an index file.
 */
export function foldedPaths(decodedPath: string, queryMark: number): readonly string[] {
  const paths = [foldPath(decodedPath)];
  if (queryMark >= 0) paths.push(foldPath(decodedPath.slice(0, queryMark)));
  for (let at = paths.length - 1; at >= 0; at--) {
    const path = paths[at]!;
    const bare = withoutSigns(path);
    if (bare.length < path.length) paths.push(bare);
  }
  for (let at = paths.length - 1; at >= 0; at--) {
    const path = paths[at]!;
    for (let from = path, folder = foldIndex(from); folder !== from; folder = foldIndex(from)) {
      from = withoutSigns(folder);
      paths.push(folder);
      if (from !== folder) paths.push(from);
    }
  }
  return paths;
}

/** Removes the parameters of a segment, and what servers drop at the ends of its name. Cut by hand to stay linear. */
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

/** Returns the decoded path of a URL with this path: without a query, dot segments and escapes. Undefined if there is no such URL. */
export function pathInUrl(path: string): string | undefined {
  return parseUrl(`https://example.org${path}`)?.decodedPath;
}

/** Whether a path is equal to `top`, or below it on a segment boundary. `top` has no slash at its end. */
export function isBelow(path: string, top: string): boolean {
  return path.startsWith(top) && (path.length === top.length || path.charCodeAt(top.length) === 0x2f);
}

/**
 * Whether a path is at the place of a host entry, or below it. In such a place, `*` matches any segment, and a segment that ends with `*`
 * matches any with this prefix (`/+*`).
 */
export function isAtPlace(path: string, place: string): boolean {
  if (!place.includes('*')) return isBelow(path, place);
  let start = 0;
  for (let from = 0, to = 0; from < place.length; from = to) {
    if (start >= path.length) return false;
    to = slashFrom(place, from + 1);
    const end = slashFrom(path, start + 1);
    const isOpen = place.charCodeAt(to - 1) === 0x2a;
    const length = isOpen ? to - 1 - from : to - from;
    if (isOpen ? end - start < length : end - start !== length) return false;
    if (!path.startsWith(place.slice(from, from + length), start)) return false;
    start = end;
  }
  return true;
}

/** Whether some path is at or below both places. */
export function placesMeet(one: string, other: string): boolean {
  const steps = one.split('/');
  const others = other.split('/');
  const count = Math.min(steps.length, others.length);
  for (let at = 0; at < count; at++) if (!segmentsMeet(steps[at]!, others[at]!)) return false;
  return true;
}

/** Whether some segment matches both patterns. Each is a name, or a prefix followed by `*`. */
function segmentsMeet(one: string, other: string): boolean {
  const [shorter, longer] = one.length <= other.length ? [one, other] : [other, one];
  if (shorter.endsWith('*')) return longer.startsWith(shorter.slice(0, -1));
  return longer.endsWith('*') ? shorter.startsWith(longer.slice(0, -1)) : one === other;
}

function slashFrom(path: string, from: number): number {
  const slash = path.indexOf('/', from);
  return slash < 0 ? path.length : slash;
}

/** Returns a path without the slash at its end; empty for the root. */
export function withoutLastSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Extensions that tell apart the forms of one page. Many sites also serve it without any. */
const PAGE_EXTENSIONS: ReadonlySet<string> = new Set(
  'html htm xhtml shtml php php3 php4 php5 php7 phtml asp aspx jsp jspx jsf do action cfm cgi pl json xml amp'.split(
    ' ',
  ),
);

/** Returns a folded path without a page's extension at its end: `/a/enter` for `/a/enter.php`. */
export function dropExtension(path: string): string {
  const dot = path.lastIndexOf('.');
  return PAGE_EXTENSIONS.has(path.slice(dot + 1)) ? path.slice(0, dot) : path;
}

/** Names that stand for their folder: `index` with or without an extension, `default` with one, `amp` (a page's mobile form) without one. */
const INDEX_NAMES = ['index', 'default', 'amp'] as const;

/** Returns a folded path without an index file at its end: `/a` for `/a/index.php`. */
export function foldIndex(path: string): string {
  const start = path.lastIndexOf('/') + 1;
  if (start === 0 || start === path.length || path.charCodeAt(start) > 0x69) return path;
  const name = INDEX_NAMES.find((one) => path.startsWith(one, start));
  if (name === undefined) return path;
  const stop = nameEnd(path, start, path.length);
  if (stop !== start + name.length || (name === 'default' && stop === path.length)) return path;
  return name === 'amp' && stop < path.length ? path : path.slice(0, start - 1);
}
