/** Which parts of a drop one worker scans alone, and which all of them scan together. */

/** A worker may end so much later than with an even share: to wait a little for the last one costs less than to scan a part together. */
const SLACK = 0.05;

/** Numbers of parts, in the order in which they are scanned. */
export interface ScanPlan {
  /** Scanned first, each by all workers together. */
  readonly shared: readonly number[];
  /** Scanned then, each by whichever worker is free. */
  readonly whole: readonly number[];
}

/**
 * Shares out parts of these sizes so that all workers end at about the same time: of the largest as many are scanned together as it takes
 * until each of the others can be left to one worker.
 */
export function planScan(sizes: readonly number[], workers: number): ScanPlan {
  const order = sizes.map((_, i) => i).sort((a, b) => sizes[b]! - sizes[a]! || a - b);
  const totalBytes = sizes.reduce((sum, bytes) => sum + bytes, 0);
  const threads = Math.max(1, workers);
  let sharedCount = 0;
  let sharedBytes = 0;
  for (; sharedCount < order.length; sharedCount++) {
    const longest = longestLoad(
      order.slice(sharedCount).map((number) => sizes[number]!),
      threads,
    );
    if (sharedBytes + threads * longest <= (1 + SLACK) * totalBytes) break;
    sharedBytes += sizes[order[sharedCount]!]!;
  }
  return { shared: order.slice(0, sharedCount), whole: order.slice(sharedCount) };
}

/** The most that one worker gets where each size goes to the one that has least. */
function longestLoad(sizes: readonly number[], workers: number): number {
  const loads = new Array<number>(workers).fill(0);
  for (const size of sizes) {
    const least = loads.indexOf(Math.min(...loads));
    loads[least] = loads[least]! + size;
  }
  return Math.max(...loads);
}
