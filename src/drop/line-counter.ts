/** Checks that a part has the number of lines that the manifest states, for a build and for a check without a build. */
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import { LineSplitter } from './line-splitter.ts';
import type { DropPart } from './manifest.ts';

/**
 * Compares the number of lines of a part, without blank ones, with the manifest.
 *
 * @throws PagegateError drop_part_records
 */
export function checkCount(part: DropPart, records: number): void {
  if (records !== part.records) throw wrongCount(part, String(records));
}

/** Checks the count while the part is still being read. @throws PagegateError drop_part_records if there are too many lines already */
export function checkCountSoFar(part: DropPart, records: number): void {
  if (records > part.records) throw wrongCount(part, `at least ${records}`);
}

function wrongCount(part: DropPart, actual: string): PagegateError {
  const what = `${part.name}: the manifest says ${counted(part.records, 'line')}, the file has ${actual}.`;
  return new PagegateError('drop_part_records', what, { part: part.name, expected: part.records, got: actual });
}

/** Counts the lines of a part and checks the count. */
export class LineCounter {
  readonly #part: DropPart;
  readonly #lines: LineSplitter;
  #records = 0;

  /** Call `push` for every unpacked chunk of the part, then `end`. */
  constructor(part: DropPart) {
    this.#part = part;
    const add = (): void => {
      this.#records += 1;
    };
    this.#lines = new LineSplitter({ line: add, overlong: add, repair: () => {} });
  }

  /** @throws PagegateError drop_part_records if there are too many lines already */
  push(chunk: Buffer): void {
    this.#lines.push(chunk);
    checkCountSoFar(this.#part, this.#records);
  }

  /** @throws PagegateError drop_part_records */
  end(): void {
    this.#lines.end();
    checkCount(this.#part, this.#records);
  }
}
