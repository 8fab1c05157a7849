/**
 * The payload as overlapping views of 1 GiB: positions within a view are small integers, which the engine reads fastest, however large
 * the file is. Each view goes on past its gibibyte by the longest record, so that a record never ends outside.
 */

import { RECORD_MAX_BYTES } from '../format/layout.ts';
import type { IndexBytes } from './index-source.ts';

const WINDOW_SIZE_BYTES = 2 ** 30;

/** The views, and the one that an offset lies in. */
export class PayloadWindows {
  readonly #windows: Uint8Array[] = [];
  /** Where, in the view that `at` returned last, the asked-for offset is. */
  start = 0;

  constructor(bytes: IndexBytes, offset: number, sizeBytes: number) {
    for (let at = 0; at < sizeBytes; at += WINDOW_SIZE_BYTES) {
      const size = Math.min(WINDOW_SIZE_BYTES + RECORD_MAX_BYTES, sizeBytes - at);
      this.#windows.push(bytes.view(offset + at, size));
    }
  }

  /** The view in which the payload's byte `offset` lies, at `start`; `offset` must be less than the payload's size. */
  at(offset: number): Uint8Array {
    if (offset < WINDOW_SIZE_BYTES) {
      this.start = offset;
      return this.#windows[0]!;
    }
    const window = Math.floor(offset / WINDOW_SIZE_BYTES);
    this.start = offset - window * WINDOW_SIZE_BYTES;
    return this.#windows[window]!;
  }
}
