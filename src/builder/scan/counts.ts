/** Counts by name. */

/** Counts by name. A name that was never counted is absent. */
export type Counts = Record<string, number>;

export function increment(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

/** Adds one table of counts to another. */
export function addCounts(to: Counts, from: Readonly<Counts>): void {
  for (const [name, number] of Object.entries(from)) increment(to, name, number);
}

/** Returns the counts sorted: the largest first, on a tie by name. */
export function sortedCounts(counts: Readonly<Counts>): Counts {
  return Object.fromEntries(Object.entries(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)));
}
