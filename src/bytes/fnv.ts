/** FNV-1a, a hash that takes one code at a time: `hash = Math.imul(hash ^ code, HASH_PRIME)`, beginning with the seed. */

export const HASH_SEED = 0x811c9dc5 | 0;
export const HASH_PRIME = 0x01000193;
