/** How far long work is, as those who do it say it; the command line, the index store and the console each show it in their way. */

export interface Progress {
  /** What is being done, in words. */
  readonly what: string;
  /** How much of it is done, from 0 to 1; undefined where nobody can say. */
  readonly share?: number | undefined;
  /** A rate, a count, the time left; empty where there is nothing to say. */
  readonly detail?: string | undefined;
}

/** Where progress is shown. */
export interface ProgressView {
  update(progress: Progress): void;
}

/** How much of a whole is done, from 0 to 1; of nothing, all. */
export const shareOf = (done: number, total: number): number => (total === 0 ? 1 : done / total);

/** A share as whole percents: 100 only when all is done. */
export const percentOf = (share: number): number => Math.floor(Math.min(1, Math.max(0, share)) * 100);
