/** Folders that are dates: what follows a year and a month (`/2024/05/…`) is the title of an article. */
import { areDigits, isYearAt } from '../url/keys.ts';

/** Right before stands a name, and a whole date before that. */
const SECTION = -1;
/** A year, a month and a day. */
const WHOLE_DATE = 3;

/** The extension of a page that is written, not called: no title ends otherwise. */
const WRITTEN = /^\.[gsx]?html?$/i;

/** Reads the segments of a path, one after the other. */
export class DatedFolders {
  /** How many numbers of a date the segments before are; or {@link SECTION}. */
  #numbers = 0;

  clear(): void {
    this.#numbers = 0;
  }

  /**
   * Reads a segment; whether a year and a month stand right before it. Behind a whole date it may be the name of a section, and the article a
   * page in it.
   */
  isDated(path: string, start: number, end: number): boolean {
    const isNumber = end - start <= 4 && areDigits(path, start, end);
    const isYear = isNumber && isYearAt(path, start, end);
    const before = this.#numbers;
    const isDated =
      !isNumber && (before >= 2 || (before === SECTION && isWritten(path, path.lastIndexOf('.', end), end)));
    if (isYear) this.#numbers = 1;
    else if (isNumber && before > 0 && end - start <= 2) this.#numbers = before + 1;
    else this.#numbers = isDated && before === WHOLE_DATE ? SECTION : 0;
    return isDated;
  }
}

/** Whether nothing but the extension of a page that is written stands between two places. */
export function isWritten(path: string, dot: number, end: number): boolean {
  return end - dot <= 6 && WRITTEN.test(path.slice(dot, end));
}
