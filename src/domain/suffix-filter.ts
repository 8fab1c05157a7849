/** Quick answers about the Public Suffix List: most names are neither on it nor below a part of it. */
import { createRequire } from 'node:module';
import { DOT } from '../bytes/ascii.ts';
import { ByteKey, ByteMap, NOT_FOUND } from '../bytes/byte-map.ts';
import { HASH_PRIME, HASH_SEED } from '../bytes/fnv.ts';

/**
 * The list as tldts stores it: a tree of labels, from the right. The API of tldts looks up only whole hosts and takes about half a
 * microsecond; a build would need it for most lines, a verdict for most hosts with a subdomain. Remove this when the library reports where
 * a name leaves the tree. suffix-filter.test.ts compares both.
 */
interface SuffixTree {
  /** For each node, the index of its first edge. Its last edge comes right before the next node's first. */
  readonly edgeStart: Uint16Array;
  /** For each edge, the length of its label. */
  readonly edgeLength: Uint8Array;
  /** For each edge, the node that it leads to. */
  readonly edgeChild: Uint16Array;
  /** The labels of all edges, concatenated. */
  readonly labelText: string;
  readonly rulesRoot: number;
  readonly exceptionsRoot: number;
}

const tree = createRequire(import.meta.url)('tldts/dist/cjs/src/data/trie.js') as SuffixTree;
const WILDCARD = '*';

/** Number of bits in each of the two filters. One in twelve names that are not in the tree passes the first, one in a thousand the second. */
const FILTER_BITS = 1 << 17;
/** A bit for each name in the tree, by a hash of its characters from the last to the first. */
const nameFilter = new Uint32Array(FILTER_BITS / 32);
/** The same for each name that has a wildcard rule for the label before it. */
const wildcardFilter = new Uint32Array(FILTER_BITS / 32);
fillFilters();

/** Offsets in the tree's text at which the label of each edge begins. */
function labelStarts(): Uint32Array {
  const starts = new Uint32Array(tree.edgeLength.length);
  for (let edge = 1; edge < starts.length; edge++) starts[edge] = starts[edge - 1]! + tree.edgeLength[edge - 1]!;
  return starts;
}

function fillFilters(): void {
  const starts = labelStarts();
  for (const root of [tree.rulesRoot, tree.exceptionsRoot]) markNames(starts, root, HASH_SEED, false);
}

/** Marks the names below a node in the filters. `hash` is that of the node's own name, if it has one. */
function markNames(starts: Uint32Array, node: number, hash: number, isNamed: boolean): void {
  const { labelText, edgeLength, edgeStart } = tree;
  const end = edgeStart[node + 1]!;
  const before = isNamed ? hashed(hash, DOT) : hash;
  for (let edge = edgeStart[node]!; edge < end; edge++) {
    const start = starts[edge]!;
    const length = edgeLength[edge]!;
    let next = before;
    // Runs once, at startup, before anything is compiled. A call for each character would take twice as long.
    for (let at = start + length - 1; at >= start; at--) next = Math.imul(next ^ labelText.charCodeAt(at), HASH_PRIME);
    if (length === 1 && labelText[start] === WILDCARD) mark(wildcardFilter, hash);
    else mark(nameFilter, next);
    markNames(starts, tree.edgeChild[edge]!, next, true);
  }
}

function hashed(hash: number, code: number): number {
  return Math.imul(hash ^ code, HASH_PRIME);
}

function filterBit(hash: number): number {
  return (hash ^ (hash >>> 15)) & (FILTER_BITS - 1);
}

function mark(filter: Uint32Array, hash: number): void {
  const bit = filterBit(hash);
  filter[bit >>> 5]! |= 1 << (bit & 31);
}

function isMarked(filter: Uint32Array, hash: number): boolean {
  const bit = filterBit(hash);
  return ((filter[bit >>> 5]! >>> (bit & 31)) & 1) === 1;
}

/**
 * Returns false if a canonical name of several labels is not a public suffix: the list has neither this name nor a wildcard for its first
 * label. True means nothing.
 */
export function mayBeSuffix(name: string): boolean {
  let hash = HASH_SEED;
  let parent = 0;
  let hasParent = false;
  for (let at = name.length - 1; at >= 0; at--) {
    const code = name.charCodeAt(at);
    if (code === DOT) {
      parent = hash;
      hasParent = true;
    }
    hash = hashed(hash, code);
  }
  return !hasParent || isMarked(nameFilter, hash) || isMarked(wildcardFilter, parent);
}

/** Names of two labels that are a rule or the end of longer rules, and which top-level labels have a wildcard rule. */
interface Branches {
  readonly names: ByteMap;
  /** Indexed by the last two letters of a name: 1 if a top-level label that ends with them has a wildcard rule (`*.ck`). */
  readonly wildcards: Uint8Array;
}

let branches: Branches | undefined;

/** Reads the names of two labels from the tree. Only a build needs them, and this takes many times longer than filling the filters. */
function readBranches(): Branches {
  const starts = labelStarts();
  const labelOf = (edge: number): string => tree.labelText.slice(starts[edge], starts[edge]! + tree.edgeLength[edge]!);
  const names = new Set<string>();
  const wildcards = new Uint8Array(0x1_0000);
  for (const root of [tree.rulesRoot, tree.exceptionsRoot]) {
    for (let top = tree.edgeStart[root]!; top < tree.edgeStart[root + 1]!; top++) {
      const node = tree.edgeChild[top]!;
      const topLabel = labelOf(top);
      for (let edge = tree.edgeStart[node]!; edge < tree.edgeStart[node + 1]!; edge++) {
        const label = labelOf(edge);
        if (label === WILDCARD) wildcards[lastTwo(Buffer.from(topLabel), topLabel.length)] = 1;
        else names.add(`${label}.${topLabel}`);
      }
    }
  }
  const map = new ByteMap();
  const key = new ByteKey();
  for (const name of names) {
    const bytes = Buffer.from(name, 'latin1');
    key.take(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length);
    map.add(0, key, 1);
  }
  return { names: map, wildcards };
}

function lastTwo(bytes: Uint8Array, end: number): number {
  return (bytes[end - 2]! << 8) | bytes[end - 1]!;
}

/** Looks up names in bytes. */
export class SuffixBranches {
  readonly #key = new ByteKey();
  readonly #branches: Branches;

  constructor() {
    branches ??= readBranches();
    this.#branches = branches;
  }

  /**
   * Returns true if the list has no rule for the last two labels `source[start, end)` of a canonical name, or below them. Then they are the
   * registrable domain of the name and of all their subdomains. False means nothing.
   */
  endAbove(source: Uint8Array, view: DataView, start: number, end: number): boolean {
    const { names, wildcards } = this.#branches;
    if (wildcards[lastTwo(source, end)] !== 0) return false;
    this.#key.take(view, start, end);
    return names.get(0, this.#key) === NOT_FOUND;
  }
}
