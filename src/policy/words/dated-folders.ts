/** Folders that form a date. After a year and a month (`/2024/05/…`) comes the title of an article. */
import { areDigits, isYearAt } from '../url/keys.ts';

/** State: the segment before is a name, right after a whole date. */
const SECTION = -1;
/** Number of segments of a whole date: year, month and day. */
const WHOLE_DATE = 3;

/** The extension of a written page, as opposed to a program's. No title ends in another one. */
const WRITTEN = /^\.[gsx]?html?$/i;

/** Finds dates while the segments of a path are read one after the other. */
export class DatedFolders {
  /** How many segments of a date come right before; or {@link SECTION}. */
  #numbers = 0;

  clear(): void {
    this.#numbers = 0;
  }

  /**
   * Reads the next segment. Returns whether it comes right after at least a year and a month. After a whole date it may be the name of a
   * section, and the article a page in it.
   * @param hasDigit whether there is a digit in the segment
   */
  isDated(path: string, start: number, end: number, hasDigit: boolean): boolean {
    const isNumber = hasDigit && end - start <= 4 && areDigits(path, start, end);
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

/** Whether the text from `dot` to `end` is exactly the extension of a written page. */
export function isWritten(path: string, dot: number, end: number): boolean {
  return end - dot <= 6 && WRITTEN.test(path.slice(dot, end));
}
