/** Progress of long work. The command line, the index store and the console each show it in their own way. */

export interface Progress {
  /** A description of the current work. */
  readonly what: string;
  /** The completed share, from 0 to 1; undefined if it is unknown. */
  readonly share?: number | undefined;
  /** Further information, such as a rate, a count or the time left. */
  readonly detail?: string | undefined;
}

/** Shows progress. */
export interface ProgressView {
  update(progress: Progress): void;
}

/** Returns the completed share, from 0 to 1; 1 if the total is 0. */
export const shareOf = (done: number, total: number): number => (total === 0 ? 1 : done / total);

/** Returns a share in percent, rounded down, so that 100 means complete. */
export const percentOf = (share: number): number => Math.floor(Math.min(1, Math.max(0, share)) * 100);
