/** The paths as which different servers read one path. */
import { type PathSegments, SEGMENT_HAS } from './path-segments.ts';
import { isCutAt, isMethodMark, lastLetterEnd, withoutNameless, withoutSigns } from './segments.ts';

/** At most this many characters that end a path are considered. */
const CUTS_MAX = 8;

/**
 * Returns a path up to each character that ends it for servers that decode before they parse (`/docs%3Fx=1`, `/login%26x=1`), and then all
 * of it; undefined if there is no such character. Each reading is judged on its own. An act counts if it is in one of them, reading matter
 * only if all of them announce it. So nothing that is appended lifts a denial.
 */
export function readingsOf(path: string, { signs, isCut }: PathSegments): readonly string[] | undefined {
  if ((signs & SEGMENT_HAS.odd) === 0 && !isCut) return undefined;
  let readings: string[] | undefined;
  for (let at = 0, before = 0; at < path.length && readings?.length !== CUTS_MAX; at++) {
    if (!isCutAt(path, at)) continue;
    // If only punctuation follows the one before, the reading adds nothing.
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

/** Extensions after the name of a method. */
const METHOD_END = /\.(?:action|do)$/i;

/** Returns the path of a program's method as that of a program: `/login.action` for `/x!login.action`; undefined if there is none. */
function methodIn(reading: string): string | undefined {
  if (!reading.includes('!')) return undefined;
  const path = withoutSigns(withoutNameless(reading));
  const mark = path.lastIndexOf('!');
  const slash = path.lastIndexOf('/');
  if (mark < slash || !isMethodMark(path, mark, path.length) || !METHOD_END.test(path)) return undefined;
  return path.slice(0, slash + 1) + path.slice(mark + 1);
}
