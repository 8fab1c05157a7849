/** How tokens are compared: letters and digits of ASCII without case, everything between them left out, as one hash. */

/** For each ASCII code what it counts as: lower-case letter, digit, or 0 for separators. */
export const FOLD = new Uint8Array(128);
for (let code = 0x30; code <= 0x39; code++) FOLD[code] = code;
for (let code = 0x61; code <= 0x7a; code++) {
  FOLD[code] = code;
  FOLD[code - 0x20] = code;
}

/** FNV-1a, a folded character at a time: `hash = Math.imul(hash ^ folded, HASH_PRIME)`. */
export const HASH_SEED = 0x811c9dc5 | 0;
export const HASH_PRIME = 0x01000193;
