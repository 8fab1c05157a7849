/** The paths that a path is to one server or another. */
import { type PathSegments, SEGMENT_HAS } from './path-segments.ts';
import { isCutAt, isMethodMark, lastLetterEnd, withoutNameless, withoutSigns } from './segments.ts';

/** So many signs that end a path are looked at. */
const CUTS_MAX = 8;

/**
 * A path up to each sign that ends it for servers that decode before they look (`/docs%3Fx=1`, `/login%26x=1`), and at last all of it; undefined where
 * there is no such sign. Each is read by itself: what one of them says of an act counts, and it is reading matter where all of them say so. So nothing
 * that is put behind lifts a denial.
 */
export function readingsOf(path: string, { signs, isCut }: PathSegments): readonly string[] | undefined {
  if ((signs & SEGMENT_HAS.odd) === 0 && !isCut) return undefined;
  let readings: string[] | undefined;
  for (let at = 0, before = 0; at < path.length && readings?.length !== CUTS_MAX; at++) {
    if (!isCutAt(path, at)) continue;
    // Signs behind one that ends the path add nothing to what is before it.
    if (readings === undefined) readings = [path.slice(0, at)];
    else if (lastLetterEnd(path, before, at) > before) readings.push(path.slice(0, at));
    before = at;
  }
  if (readings === undefined) return undefined;
  readings.push(path);
  for (const reading of [...readings]) {
    const method = methodIn(reading);
    if (method !== undefined) readings.push(method);
  }
  return readings;
}

/** Extensions behind the name of a method. */
const METHOD_END = /\.(?:action|do)$/i;

/** The path of a program's method as that of a program: `/login.action` of `/x!login.action`; undefined where there is none. */
function methodIn(reading: string): string | undefined {
  if (!reading.includes('!')) return undefined;
  const path = withoutSigns(withoutNameless(reading));
  const mark = path.lastIndexOf('!');
  const slash = path.lastIndexOf('/');
  if (mark < slash || !isMethodMark(path, mark, path.length) || !METHOD_END.test(path)) return undefined;
  return path.slice(0, slash + 1) + path.slice(mark + 1);
}
