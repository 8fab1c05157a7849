/** Holds a part to the number of lines that its manifest says, for a build and for a check that builds nothing. */
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import { LineSplitter } from './line-splitter.ts';
import type { DropPart } from './manifest.ts';

/**
 * Compares the lines of a part that are not blank with what its manifest says.
 *
 * @throws PagegateError drop_part_records
 */
export function checkCount(part: DropPart, records: number): void {
  if (records !== part.records) throw wrongCount(part, String(records));
}

/** The same while it is still read. */
export function checkCountSoFar(part: DropPart, records: number): void {
  if (records > part.records) throw wrongCount(part, `at least ${records}`);
}

function wrongCount(part: DropPart, got: string): PagegateError {
  const what = `${part.name}: the manifest says ${counted(part.records, 'line')}, the file has ${got}.`;
  return new PagegateError('drop_part_records', what, { part: part.name, expected: part.records, got });
}

/** Counts the lines of a part and does nothing else with them. */
export class LineCounter {
  readonly #part: DropPart;
  readonly #lines: LineSplitter;
  #records = 0;

  /** For one part; `push` every unpacked chunk, then `end`. */
  constructor(part: DropPart) {
    this.#part = part;
    const add = (): void => {
      this.#records += 1;
    };
    this.#lines = new LineSplitter({ line: add, overlong: add, repair: () => {} });
  }

  /** @throws PagegateError drop_part_records where there are too many already */
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
