/** Recognizes hosts and fixed texts in the bytes of a line. */
import { NOT_FOUND } from '../../bytes/byte-map.ts';
import { LIMITS } from '../../limits.ts';

const HYPHEN = 0x2d;
const DOT = 0x2e;
const NAME_MAX_BYTES = LIMITS.domainBytes.value;
const LABEL_MAX_BYTES = LIMITS.labelBytes.value;

/** Classes of host characters: 1 lower-case letter, 2 digit or underscore, 3 hyphen, 4 dot, 0 anything else. */
const HOST_CLASS = new Uint8Array(256);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) HOST_CLASS[code] = 1;
  if (/[0-9_]/.test(character)) HOST_CLASS[code] = 2;
}
HOST_CLASS[HYPHEN] = 3;
HOST_CLASS[DOT] = 4;

/** A text of at least four bytes, compared with lines four bytes at a time. The last four may overlap the ones before. */
export class FixedText {
  readonly size: number;
  readonly #words: Int32Array;

  /** `text` is ASCII, at least four characters long. */
  constructor(text: string) {
    this.size = text.length;
    const view = new DataView(Uint8Array.from(Buffer.from(text, 'latin1')).buffer);
    this.#words = Int32Array.from({ length: (text.length + 3) >>> 2 }, (_, i) =>
      view.getInt32(Math.min(i * 4, text.length - 4), true),
    );
  }

  /** The first four bytes, as a little-endian integer. */
  get firstWord(): number {
    return this.#words[0]!;
  }

  /** True if the text is at `at` of a line that ends at `end`. */
  isAt(view: DataView, at: number, end: number): boolean {
    const words = this.#words;
    const last = at + this.size - 4;
    if (last + 4 > end) return false;
    let from = at;
    for (let i = 0; from < last; i++, from += 4) if (view.getInt32(from, true) !== words[i]) return false;
    return view.getInt32(last, true) === words[words.length - 1];
  }
}

/** Returns the end of the host at `start`, or `NOT_FOUND` if it is not in canonical form (see `plainHostEnd` of the domain module). */
export function hostEnd(buffer: Uint8Array, start: number, end: number): number {
  let at = start;
  let labelStart = start;
  let labels = 0;
  let previous = 4;
  for (; at < end; at++) {
    const kind = HOST_CLASS[buffer[at]!]!;
    if (kind === 0) break;
    if (kind === 4) {
      if (previous >= 3 || at - labelStart > LABEL_MAX_BYTES) return NOT_FOUND;
      labels += 1;
      labelStart = at + 1;
    } else if (kind === 3 && (previous === 4 || (at === labelStart + 3 && isAce(buffer, labelStart)))) return NOT_FOUND;
    previous = kind;
  }
  if (labels === 0 || previous >= 3 || at - labelStart > LABEL_MAX_BYTES || at - start > NAME_MAX_BYTES)
    return NOT_FOUND;
  return HOST_CLASS[buffer[labelStart]!] === 1 ? at : NOT_FOUND;
}

function isAce(buffer: Uint8Array, at: number): boolean {
  return buffer[at] === 0x78 && buffer[at + 1] === 0x6e && buffer[at + 2] === HYPHEN;
}

/** Returns where the last two labels of a host begin. The host must have at least two. */
export function lastLabelsStart(buffer: Uint8Array, start: number, end: number): number {
  let at = end - 1;
  while (buffer[at] !== DOT) at--;
  while (at > start && buffer[at - 1] !== DOT) at--;
  return at;
}

export function startsWithWww(buffer: Uint8Array, at: number): boolean {
  return buffer[at] === 0x77 && buffer[at + 1] === 0x77 && buffer[at + 2] === 0x77 && buffer[at + 3] === DOT;
}
