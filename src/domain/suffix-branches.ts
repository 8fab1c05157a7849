/** Determines quickly whether the Public Suffix List may have a rule at or below a name of two labels. */
import { createRequire } from 'node:module';
import { ByteKey, ByteMap, NOT_FOUND } from '../bytes/byte-map.ts';

/**
 * The list as tldts stores it: a tree of labels, from the right. The API of tldts looks up only whole hosts and takes about half a
 * microsecond; a build would need it for most lines. Remove this when the library reports where a name leaves the tree.
 * suffix-branches.test.ts compares both.
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
