/** Names that somebody mistyped. */

/** Longer names are not compared: what they are compared with is short. */
const COMPARED_MAX_LENGTH = 130;

/** ` (did you mean "x"?)` for the known name that is most like one that is not known; empty where none is like it. */
export function didYouMean(name: string, known: Iterable<string>): string {
  if (name.length > COMPARED_MAX_LENGTH) return '';
  let best: string | undefined;
  // A third of the letters may be others.
  let least = Math.floor(name.length / 3) + 1;
  for (const one of known) {
    if (Math.abs(one.length - name.length) >= least) continue;
    const edits = editsBetween(name.toLowerCase(), one.toLowerCase());
    if (edits < least) [best, least] = [one, edits];
  }
  return best === undefined ? '' : ` (did you mean "${best}"?)`;
}

/** How many letters must be added, dropped, exchanged or put in the place of the next to make one text of another. */
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
