/**
 * A model of labels: about 400 pieces (single characters, and the pairs of pieces that occur together most often, merged again and
 * again), and for each piece the shares of the pieces that follow it, in 512ths.
 */

const ALPHABET = [...'abcdefghijklmnopqrstuvwxyz0123456789-'];
const PIECES = 400;
export const SCALE = 512;
/** Labels the pieces are found on; the shares are counted on all. */
const MERGE_LABELS = 60_000;

interface TokenModel {
  /** Pieces; the number after the last stands for the end, and as a context for the beginning. */
  readonly pieces: readonly string[];
  /** For each context, varint pairs of (piece, share) behind their count; base64. */
  readonly follow: string;
  /** Number of pieces → how many labels have it; index 0 is one piece. */
  readonly lengths: readonly number[];
}

function mergePair(tokens: number[], a: number, b: number, merged: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < tokens.length; i += 1) {
    if (tokens[i] === a && tokens[i + 1] === b) {
      out.push(merged);
      i += 1;
    } else {
      out.push(tokens[i]!);
    }
  }
  return out;
}

/** The pair that comes most often, as `first * PIECES + second`; none where no pair comes twice. */
function commonestPair(labels: readonly number[][]): number | undefined {
  const counts = new Int32Array(PIECES * PIECES);
  for (const tokens of labels) {
    for (let i = 1; i < tokens.length; i += 1) counts[tokens[i - 1]! * PIECES + tokens[i]!]! += 1;
  }
  let best = 0;
  for (let pair = 1; pair < counts.length; pair += 1) if (counts[pair]! > counts[best]!) best = pair;
  return counts[best]! < 2 ? undefined : best;
}

/** Shares of the counts in whole 512ths that sum to 512: what is left over goes to the largest remainders. */
function quantize(counts: ReadonlyMap<number, number>): [number, number][] {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const exact = [...counts].map(([token, count]) => ({ token, share: (count / total) * SCALE }));
  const rows = exact.map(({ token, share }) => ({ token, whole: Math.floor(share), rest: share % 1 }));
  let left = SCALE - rows.reduce((sum, { whole }) => sum + whole, 0);
  rows.sort((a, b) => b.rest - a.rest || a.token - b.token);
  for (const row of rows) {
    if (left === 0) break;
    row.whole += 1;
    left -= 1;
  }
  return rows
    .filter(({ whole }) => whole > 0)
    .sort((a, b) => a.token - b.token)
    .map(({ token, whole }) => [token, whole]);
}

function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest & 127) | 128);
    rest >>>= 7;
  }
  bytes.push(rest);
}

export function learnTokens(labels: readonly string[]): TokenModel {
  const usable = labels.filter((label) => /^(?!..--)[a-z0-9-]{1,40}$/.test(label));
  const pieces = [...ALPHABET];
  const step = Math.max(1, Math.floor(usable.length / MERGE_LABELS));
  let tokenized = usable.filter((_, i) => i % step === 0).map((label) => [...label].map((c) => ALPHABET.indexOf(c)));
  const merges: [number, number][] = [];
  while (pieces.length < PIECES) {
    const pair = commonestPair(tokenized);
    if (pair === undefined) break;
    const a = Math.floor(pair / PIECES);
    const b = pair % PIECES;
    const merged = pieces.length;
    pieces.push(`${pieces[a]}${pieces[b]}`);
    merges.push([a, b]);
    tokenized = tokenized.map((tokens) => mergePair(tokens, a, b, merged));
  }
  const end = pieces.length;
  const follow = Array.from({ length: end + 1 }, () => new Map<number, number>());
  const lengths = new Array<number>(40).fill(0);
  for (const label of usable) {
    let tokens = [...label].map((c) => ALPHABET.indexOf(c));
    for (const [i, [a, b]] of merges.entries()) {
      if (tokens.length === 1) break;
      if (tokens.includes(a) && tokens.includes(b)) tokens = mergePair(tokens, a, b, ALPHABET.length + i);
    }
    lengths[tokens.length - 1]! += 1;
    let context = end;
    for (const token of [...tokens, end]) {
      const row = follow[context]!;
      row.set(token, (row.get(token) ?? 0) + 1);
      context = token;
    }
  }
  const bytes: number[] = [];
  for (const counts of follow) {
    const row = counts.size === 0 ? [[end, SCALE] as const] : quantize(counts);
    pushVarint(bytes, row.length);
    let previous = 0;
    for (const [token, share] of row) {
      pushVarint(bytes, token - previous);
      pushVarint(bytes, share);
      previous = token;
    }
  }
  return { pieces, follow: Buffer.from(bytes).toString('base64'), lengths };
}
