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

/** Names of two labels that are a rule or the end of longer rules. */
const branches = new ByteMap();
/** Indexed by the last two letters of a name: 1 if a top-level label that ends with them has a wildcard rule (`*.ck`). */
const wildcards = new Uint8Array(0x1_0000);
/** Number of bits in each of the two filters. One in twelve names that are not in the tree passes the first, one in a thousand the second. */
const FILTER_BITS = 1 << 17;
/** A bit for each name in the tree, by a hash of its characters from the last to the first. */
const nameFilter = new Uint32Array(FILTER_BITS / 32);
/** The same for each name that has a wildcard rule for the label before it. */
const wildcardFilter = new Uint32Array(FILTER_BITS / 32);
readTree();

function readTree(): void {
  const labels: string[] = [];
  let offset = 0;
  for (const length of tree.edgeLength) {
    labels.push(tree.labelText.slice(offset, offset + length));
    offset += length;
  }
  const names = new Set<string>();
  for (const root of [tree.rulesRoot, tree.exceptionsRoot]) {
    markNames(labels, root, HASH_SEED, false);
    for (let top = tree.edgeStart[root]!; top < tree.edgeStart[root + 1]!; top++) {
      const node = tree.edgeChild[top]!;
      for (let edge = tree.edgeStart[node]!; edge < tree.edgeStart[node + 1]!; edge++) {
        if (labels[edge] === WILDCARD) wildcards[lastTwo(Buffer.from(labels[top]!), labels[top]!.length)] = 1;
        else names.add(`${labels[edge]}.${labels[top]}`);
      }
    }
  }
  const key = new ByteKey();
  for (const name of names) {
    const bytes = Buffer.from(name, 'latin1');
    key.take(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length);
    branches.add(0, key, 1);
  }
}

/** Marks the names at and below a node in the filter. `hash` is that of the node's own name. */
function markNames(labels: readonly string[], node: number, hash: number, isNamed: boolean): void {
  for (let edge = tree.edgeStart[node]!; edge < tree.edgeStart[node + 1]!; edge++) {
    const label = labels[edge]!;
    let next = isNamed ? hashed(hash, DOT) : hash;
    for (let at = label.length - 1; at >= 0; at--) next = hashed(next, label.charCodeAt(at));
    if (label === WILDCARD) mark(wildcardFilter, hash);
    else mark(nameFilter, next);
    markNames(labels, tree.edgeChild[edge]!, next, true);
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

function lastTwo(bytes: Uint8Array, end: number): number {
  return (bytes[end - 2]! << 8) | bytes[end - 1]!;
}

/** Looks up names in bytes. */
export class SuffixBranches {
  readonly #key = new ByteKey();

  /**
   * Returns true if the list has no rule for the last two labels `source[start, end)` of a canonical name, or below them. Then they are the
   * registrable domain of the name and of all their subdomains. False means nothing.
   */
  endAbove(source: Uint8Array, view: DataView, start: number, end: number): boolean {
    if (wildcards[lastTwo(source, end)] !== 0) return false;
    this.#key.take(view, start, end);
    return branches.get(0, this.#key) === NOT_FOUND;
  }
}
