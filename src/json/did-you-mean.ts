/** Suggestions for mistyped names. */

/** Longer names are not compared, because all known names are short. */
const COMPARED_MAX_LENGTH = 130;

/** Returns ` (did you mean "x"?)` with the known name that is most similar to `name`; empty if no known name is similar. */
export function didYouMean(name: string, known: Iterable<string>): string {
  if (name.length > COMPARED_MAX_LENGTH) return '';
  let best: string | undefined;
  // Up to a third of the letters may differ.
  let least = Math.floor(name.length / 3) + 1;
  for (const one of known) {
    if (Math.abs(one.length - name.length) >= least) continue;
    const edits = editsBetween(name.toLowerCase(), one.toLowerCase());
    if (edits < least) [best, least] = [one, edits];
  }
  return best === undefined ? '' : ` (did you mean "${best}"?)`;
}

/** Returns the edit distance between two texts: the number of insertions, deletions, substitutions and swaps of adjacent letters. */
function editsBetween(one: string, other: string): number {
  let above: readonly number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        edits = Math.min(edits, above[j - 2]! + 1);
      next.push(edits);
    }
    above = row;
    row = next;
  }
  return row[other.length]!;
}
