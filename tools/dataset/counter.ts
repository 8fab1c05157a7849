/** How often each name was seen. */
export class Counter {
  readonly counts = new Map<string, number>();
  total = 0;

  add(name: string, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    this.total += count;
  }

  /** The most frequent names with their counts; equal counts in the order of the names. */
  top(limit: number): [string, number][] {
    const sorted = [...this.counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
    return sorted.slice(0, limit);
  }
}
