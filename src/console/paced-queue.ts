/** Work that holds the console's only thread up takes turns, so that pages are answered between. */
import { PagegateError } from '../errors.ts';

/** Runs one piece of work after the other, and leaves the thread to others for as long after each as it took. */
export class PacedQueue {
  readonly #most: number;
  #waiting = 0;
  /** The end of the latest pause. */
  #latest: Promise<void> = Promise.resolve();

  /** @param most pieces that wait or are worked on at a time */
  constructor(most: number) {
    this.#most = most;
  }

  /** @throws PagegateError console_busy when too many wait already, and what the work throws */
  async take<T>(work: () => T): Promise<T> {
    if (this.#waiting >= this.#most) throw new PagegateError('console_busy');
    this.#waiting += 1;
    const before = this.#latest;
    let end = (): void => {};
    this.#latest = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    const beganMs = performance.now();
    try {
      return work();
    } finally {
      this.#waiting -= 1;
      setTimeout(end, performance.now() - beganMs);
    }
  }
}
