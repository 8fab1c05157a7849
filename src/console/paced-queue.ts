/** Paces work that blocks the console's only thread, so that pages are answered in between. */
import { PagegateError } from '../errors.ts';

/** Runs tasks one after the other. After each, it pauses for as long as the task took. */
export class PacedQueue {
  readonly #most: number;
  #waiting = 0;
  /** The end of the latest pause. */
  #latest: Promise<void> = Promise.resolve();

  /** @param most maximum number of tasks that wait or run at a time */
  constructor(most: number) {
    this.#most = most;
  }

  /** @throws PagegateError console_busy if too many tasks wait already, and what the task throws */
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
