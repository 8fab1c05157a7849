/** Compares two indexes record by record. Both are sorted by hash, so one pass over each is enough. */
import type { IndexScan } from './read-all.ts';

/** A difference between the indexes: a domain that was added, removed or changed. */
export type Change = { readonly kind: 'added' | 'removed'; readonly domain: string } | ChangedRecord;

/** A domain in both indexes whose records differ. */
export interface ChangedRecord {
  readonly kind: 'changed';
  readonly domain: string;
  /** Names of the fields that differ; a page type as `page_types.login`. */
  readonly fields: readonly string[];
}

/** One record of an index, as an entry of a drop. */
interface Item {
  readonly hashA: number;
  readonly hashB: number;
  readonly domain: string;
  /** JSON. Records with the same facts give the same bytes. */
  readonly entry: Buffer;
}

/**
 * Yields the changes from `before` to `after` in hash order. From time to time it yields `undefined`, so that the caller can pause.
 *
 * @throws PagegateError record_corrupt, index_changed
 */
export function* compareIndexes(before: IndexScan, after: IndexScan): Generator<Change | undefined> {
  const left = groupsOf(before);
  const right = groupsOf(after);
  let a = left.next().value;
  let b = right.next().value;
  for (let step = 0; a !== undefined || b !== undefined; step++) {
    if (step % 4096 === 0) yield undefined;
    const order = a === undefined ? 1 : b === undefined ? -1 : a[0]!.hashA - b[0]!.hashA || a[0]!.hashB - b[0]!.hashB;
    if (order < 0) {
      for (const { domain } of a!) yield { kind: 'removed', domain };
      a = left.next().value;
    } else if (order > 0) {
      for (const { domain } of b!) yield { kind: 'added', domain };
      b = right.next().value;
    } else {
      yield* compareGroups(a!, b!);
      a = left.next().value;
      b = right.next().value;
    }
  }
}

function* compareGroups(a: readonly Item[], b: readonly Item[]): Generator<Change> {
  const unmatched = new Map(b.map((item) => [item.domain, item]));
  for (const { domain, entry } of a) {
    const match = unmatched.get(domain);
    unmatched.delete(domain);
    if (match === undefined) yield { kind: 'removed', domain };
    else if (!entry.equals(match.entry)) yield { kind: 'changed', domain, fields: changedFields(entry, match.entry) };
  }
  for (const domain of unmatched.keys()) yield { kind: 'added', domain };
}

/** Maps each field of an entry, and each page type, to its value as text. */
function fieldsOf(entry: Buffer): ReadonlyMap<string, string> {
  const { page_types: pages, ...facts } = JSON.parse(entry.toString('utf8')) as {
    readonly page_types: Readonly<Record<string, string>>;
  };
  return new Map([
    ...Object.entries(pages).map(([type, url]) => [`page_types.${type}`, url] as const),
    ...Object.entries(facts).map(([name, value]) => [name, JSON.stringify(value)] as const),
  ]);
}

function changedFields(before: Buffer, after: Buffer): string[] {
  const a = fieldsOf(before);
  const b = fieldsOf(after);
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name));
}

/** Yields groups of records with equal hashes. Nearly every group is a single record. */
function* groupsOf(scan: IndexScan): Generator<readonly Item[], undefined> {
  let group: Item[] = [];
  for (const item of itemsOf(scan)) {
    const [first] = group;
    if (first !== undefined && (first.hashA !== item.hashA || first.hashB !== item.hashB)) {
      yield group;
      group = [];
    }
    group.push(item);
  }
  if (group.length > 0) yield group;
  return undefined;
}

function* itemsOf(scan: IndexScan): Generator<Item> {
  const out = Buffer.alloc(scan.info.maxAnswerSizeBytes);
  while (scan.nextBucket()) {
    while (scan.nextRecord()) {
      const { domain, hashA, hashB } = scan;
      const entry = Buffer.from(out.subarray(0, scan.writeEntry(out, 0)));
      yield { hashA, hashB, domain, entry };
    }
  }
}
