/**
 * The payload as overlapping views of 1 GiB. Offsets within a view are small integers, which are fastest for the engine, however large the
 * file is. Each view extends past its gibibyte by the maximum size of a record, so that each record ends in the view in which it begins.
 */

import { RECORD_MAX_BYTES } from '../format/layout.ts';
import type { IndexBytes } from './index-source.ts';

const WINDOW_SIZE_BYTES = 2 ** 30;

/** The views of a payload. */
export class PayloadWindows {
  readonly #windows: Uint8Array[] = [];
  /** Position of the requested offset in the view that `at` last returned. */
  start = 0;

  constructor(bytes: IndexBytes, offset: number, sizeBytes: number) {
    for (let at = 0; at < sizeBytes; at += WINDOW_SIZE_BYTES) {
      const size = Math.min(WINDOW_SIZE_BYTES + RECORD_MAX_BYTES, sizeBytes - at);
      this.#windows.push(bytes.view(offset + at, size));
    }
  }

  /** Returns the view that contains the payload's byte `offset`, and sets `start` to its position there. `offset` must be below the payload size. */
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
