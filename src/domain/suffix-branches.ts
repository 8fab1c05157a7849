/** Where the Public Suffix List branches: below which names it may have a rule, and below which it certainly has none. */
import { createRequire } from 'node:module';
import { ByteKey, ByteMap, NOT_FOUND } from '../bytes/byte-map.ts';

/**
 * The list as tldts keeps it, a tree of labels from the right. Its interface answers for whole hosts only, in about half a microsecond, and a
 * build would ask it of most lines. This can go when the library says where a name leaves the tree; suffix-branches.test.ts compares both.
 */
interface SuffixTree {
  /** For each node its first edge; its last one comes right before the next node's first. */
  readonly edgeStart: Uint16Array;
  readonly edgeLength: Uint8Array;
  readonly edgeChild: Uint16Array;
  /** The edges' labels, one after the other. */
  readonly labelText: string;
  readonly rulesRoot: number;
  readonly exceptionsRoot: number;
}

const tree = createRequire(import.meta.url)('tldts/dist/cjs/src/data/trie.js') as SuffixTree;
const WILDCARD = '*';

/** Names of two labels that rules are made of, or go on below. */
const branches = new ByteMap();
/** Last two letters of last labels that have a wildcard: `*.ck`. */
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

/** Asks about names in bytes. */
export class SuffixBranches {
  readonly #key = new ByteKey();

  /**
   * True where the list has no rule for the last two labels `source[start, end)` of a canonical name, or below them: then they are the
   * registrable domain of the name and of every host below it. False says nothing.
   */
  endAbove(source: Uint8Array, view: DataView, start: number, end: number): boolean {
    if (wildcards[lastTwo(source, end)] !== 0) return false;
    this.#key.take(view, start, end);
    return branches.get(0, this.#key) === NOT_FOUND;
  }
}
