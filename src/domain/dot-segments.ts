/** Detects disguised dot segments in a decoded path, which some servers or their file systems still treat as `.` and `..`. */
import { DOT } from '../bytes/ascii.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const NEVER_IN_PATH = /[\0-\x1f\x7f\\]/;

/** Code points that normalize to one or two dots. */
const DOTS = new Set('\uff0e\u2024\ufe52\u2025\ufe30');
/** Code points that some systems convert to a slash or a backslash, or that look like one. */
const SLASHES = new Set('\uff0f\u2215\u2044\u29f8\uff3c\u2216\u29f5\u29f9\ufe68');
/** Whitespace, which is dropped at the ends of a name, and invisible code points. */
const NOTHING = /[\s\p{Default_Ignorable_Code_Point}]/u;

/** The replacement character, decoded from bytes that are not UTF-8. A server may drop them or read a letter in another encoding. */
const UNREAD = 0xfffd;

/** The role of a character in a path, with regard to dot segments. */
type Part = 'dot' | 'nothing' | 'unread' | 'separator' | 'end' | 'name';

function partOf(path: string, at: number): Part {
  const code = path.charCodeAt(at);
  if (code === DOT) return 'dot';
  if (code === 0x2f) return 'separator';
  // Parameters, a query or a fragment end the segment's name. Everything up to the next slash does not matter.
  if (code === 0x3b || code === 0x3f || code === 0x23) return 'end';
  if (code <= 0x7f) return code === 0x20 ? 'nothing' : 'name';
  if (code === UNREAD) return 'unread';
  const character = path[at]!;
  if (DOTS.has(character)) return 'dot';
  if (SLASHES.has(character)) return 'separator';
  return NOTHING.test(character) ? 'nothing' : 'name';
}

/**
 * Whether a path, decoded once, contains a backslash, a control character, or a segment of only one or two dots. Such a segment is also
 * found with whitespace or invisible characters around the dots, with characters that normalize to dots or slashes, and with a `;`, `?` or
 * `#` after the dots. A run of invalid UTF-8 is ignored only once, between or after two dots: `т.е.` in another encoding is a name. Linear
 * in the length.
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
      // Three or more dots alone are a name. With whitespace between them, file systems drop them all.
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
