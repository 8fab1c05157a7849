/** The word of a counter: cycle · 2^40 + used. */
export const USED_BITS = 40n;
export const USED_MASK = (1n << USED_BITS) - 1n;

/** The word of a cycle with a count of used lookups. */
export function packWord(cycle: number, used: number): bigint {
  return (BigInt(cycle) << USED_BITS) + BigInt(used);
}

export function unpackWord(word: bigint): { cycle: number; used: number } {
  return { cycle: Number(word >> USED_BITS), used: Number(word & USED_MASK) };
}
