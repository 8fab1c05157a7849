/** Two indexes side by side, record by record: both are sorted by hash, so that one pass over each is enough. */
import type { Index, RecordHandle } from './read.ts';

export type Change = { readonly kind: 'added' | 'removed'; readonly domain: string } | ChangedRecord;

/** A domain that both have, with facts that differ. */
export interface ChangedRecord {
  readonly kind: 'changed';
  readonly domain: string;
  /** Names of the fields that differ, page types as `page_types.login`. */
  readonly fields: readonly string[];
}

/** Records of equal hashes: all but always one. */
interface Place {
  readonly hashA: number;
  readonly hashB: number;
  readonly records: readonly { readonly domain: string; readonly handle: RecordHandle }[];
}

/** Yields what changed from `before` to `after`, in hash order; `undefined` now and then, so that the caller can pause. */
export function* compareIndexes(before: Index, after: Index): Generator<Change | undefined> {
  const left = placesOf(before);
  const right = placesOf(after);
  const compareRecords = recordComparer(before, after);
  let a = left.next().value;
  let b = right.next().value;
  for (let step = 0; a !== undefined || b !== undefined; step++) {
    if (step % 4096 === 0) yield undefined;
    const order = a === undefined ? 1 : b === undefined ? -1 : a.hashA - b.hashA || a.hashB - b.hashB;
    if (order < 0) {
      for (const { domain } of a!.records) yield { kind: 'removed', domain };
      a = left.next().value;
    } else if (order > 0) {
      for (const { domain } of b!.records) yield { kind: 'added', domain };
      b = right.next().value;
    } else {
      yield* comparePlaces(a!, b!, compareRecords);
      a = left.next().value;
      b = right.next().value;
    }
  }
}

function* comparePlaces(
  a: Place,
  b: Place,
  compareRecords: (x: RecordHandle, y: RecordHandle) => readonly string[],
): Generator<Change> {
  const others = new Map(b.records.map(({ domain, handle }) => [domain, handle]));
  for (const { domain, handle } of a.records) {
    const other = others.get(domain);
    others.delete(domain);
    if (other === undefined) {
      yield { kind: 'removed', domain };
      continue;
    }
    const fields = compareRecords(handle, other);
    if (fields.length > 0) yield { kind: 'changed', domain, fields };
  }
  for (const domain of others.keys()) yield { kind: 'added', domain };
}

/** Compares the rendered bytes first, and looks for the fields only where these differ. */
function recordComparer(before: Index, after: Index): (x: RecordHandle, y: RecordHandle) => readonly string[] {
  const a = Buffer.alloc(before.info.maxAnswerSizeBytes);
  const b = Buffer.alloc(after.info.maxAnswerSizeBytes);
  return (x, y) => {
    const aEnd = before.writeEntry(x, a, 0);
    const bEnd = after.writeEntry(y, b, 0);
    if (a.compare(b, 0, bEnd, 0, aEnd) === 0) return [];
    return changedFields(flatten(before, x), flatten(after, y));
  };
}

function flatten(index: Index, handle: RecordHandle): ReadonlyMap<string, string> {
  const { pageTypes, domain: _, ...facts } = index.decode(handle);
  const pages = pageTypes.map(({ type, url }) => [`page_types.${type}`, url] as const);
  const named = {
    language: facts.language,
    iab_category: facts.iabCategory,
    filtering_categories: facts.filteringCategories,
    open_page_rank: facts.openPageRank,
    global_rank: facts.globalRank,
  };
  const rest = Object.entries(named).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  return new Map([...pages, ...rest]);
}

function changedFields(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name));
}

function* placesOf(index: Index): Generator<Place, undefined> {
  let place: { hashA: number; hashB: number; records: { domain: string; handle: RecordHandle }[] } | undefined;
  for (const handle of index.handles()) {
    const { hashA, hashB } = index.hashesOf(handle);
    const record = { domain: index.domainOf(handle), handle };
    if (place !== undefined && place.hashA === hashA && place.hashB === hashB) {
      place.records.push(record);
      continue;
    }
    if (place !== undefined) yield place;
    place = { hashA, hashB, records: [record] };
  }
  if (place !== undefined) yield place;
  return undefined;
}
