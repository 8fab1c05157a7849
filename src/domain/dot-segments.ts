/** Dot segments that a decoded path hides: some server, or some file system behind it, still takes them for `.` and `..`. */
import { DOT } from '../bytes/ascii.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const NEVER_IN_PATH = /[\0-\x1f\x7f\\]/;

/** What may stand for a dot, beside the dot: code points that normalize to one or two. */
const DOTS = new Set('\uff0e\u2024\ufe52\u2025\ufe30');
/** What may stand for a slash or a backslash: code points that are narrowed to one, and that look like one. */
const SLASHES = new Set('\uff0f\u2215\u2044\u29f8\uff3c\u2216\u29f5\u29f9\ufe68');
/** What is dropped at the ends of a name, or shown as nothing: blanks and ignorable code points. */
const NOTHING = /[\s\p{Default_Ignorable_Code_Point}]/u;

/** What was no character of UTF-8: perhaps dropped, perhaps a letter in another encoding. */
const UNREAD = 0xfffd;

/** What a character does in a path, as far as dot segments go. */
type Part = 'dot' | 'nothing' | 'unread' | 'separator' | 'end' | 'name';

function partOf(path: string, at: number): Part {
  const code = path.charCodeAt(at);
  if (code === DOT) return 'dot';
  if (code === 0x2f) return 'separator';
  // Parameters, a query or a fragment: the segment's name ends, and what follows up to the next slash does not matter.
  if (code === 0x3b || code === 0x3f || code === 0x23) return 'end';
  if (code <= 0x7f) return code === 0x20 ? 'nothing' : 'name';
  if (code === UNREAD) return 'unread';
  const character = path[at]!;
  if (DOTS.has(character)) return 'dot';
  if (SLASHES.has(character)) return 'separator';
  return NOTHING.test(character) ? 'nothing' : 'name';
}

/**
 * Whether a path, decoded once, holds a backslash, a control character, or a segment of nothing but one or two dots. Blanks and what is
 * invisible beside the dots do not help, nor what normalizes to dots and slashes, nor a `;`, `?` or `#` after them. What is no UTF-8 is
 * taken for nothing only in one place, between two dots or after them: `т.е.` in another encoding is a name. Linear in the length.
 */
export function hidesTraversal(decodedPath: string): boolean {
  if (NEVER_IN_PATH.test(decodedPath)) return true;
  let dots = 0;
  let isPadded = false;
  let unread = 0;
  let isName = false;
  let isOver = false;
  for (let at = 0; at <= decodedPath.length; at++) {
    const part = at === decodedPath.length ? 'separator' : partOf(decodedPath, at);
    if (part === 'separator') {
      // Dots alone are a name from three on; with blanks between, file systems drop them all.
      if (!isName && dots > 0 && (unread === 0 ? dots <= 2 || isPadded : unread === 1 && dots === 2)) return true;
      dots = 0;
      unread = 0;
      isPadded = false;
      isName = false;
      isOver = false;
    } else if (isOver || part === 'end') {
      isOver = true;
    } else if (part === 'dot') {
      dots++;
    } else if (part === 'unread') {
      if (dots === 0) isName = true;
      else if (decodedPath.charCodeAt(at - 1) !== UNREAD) unread++;
    } else if (part === 'nothing') {
      isPadded = true;
    } else {
      isName = true;
    }
  }
  return false;
}
