/**
 * Gives the policy what the index knows about a host. Parents are looked up only on demand. The record that answers may be a parent's, but
 * that does not make the host a classified one.
 */
import { parentDomains } from '../domain/public-suffix.ts';
import type { Target } from '../domain/target.ts';
import { PagegateError } from '../errors.ts';
import { type Index, NO_RECORD, type RecordHandle } from '../index/read.ts';
import type { Evidence, PageEvidence } from '../policy/types.ts';
import type { PageFilter } from '../record/types.ts';

const NOTHING: readonly never[] = [];

/** An answer that has begun with the evidence's own record. */
export interface BegunAnswer {
  pages(mayMatter: PageFilter): readonly PageEvidence[];
}

interface ParentRecord {
  readonly domain: string;
  readonly handle: number;
}

/** The record that answers for a target, and the evidence for the policy. */
export class RecordEvidence implements Evidence {
  readonly found: boolean;
  /** The record that answers, the host's own or a parent's; NO_RECORD if there is none. */
  readonly handle: number;
  /** The domain to report: the key, or the parent that answers for it. */
  readonly domain: string;
  /** The host's own record. */
  readonly #own: number;
  readonly #index: Index;
  readonly #key: string;
  readonly #classifiable: boolean;
  readonly #answer: BegunAnswer | undefined;
  #parentRecords: readonly ParentRecord[] | undefined;

  /** @param answer the answer, if one has begun with this record: then the record is not parsed a second time for its pages */
  constructor(index: Index, target: Target, subdomains: 'exact' | 'parent', answer?: BegunAnswer) {
    this.#index = index;
    this.#answer = answer;
    this.#key = target.key;
    this.#classifiable = target.classifiable;
    this.#own = target.classifiable ? index.find(target.key) : NO_RECORD;
    this.found = this.#own !== NO_RECORD;
    const parent = !this.found && subdomains === 'parent' ? this.#parents()[0] : undefined;
    this.handle = parent?.handle ?? this.#own;
    this.domain = parent?.domain ?? target.key;
  }

  /** Whether a record answers: the field `found` of the answer. */
  get answered(): boolean {
    return this.handle !== NO_RECORD;
  }

  get parentFound(): boolean {
    return this.#parents().length > 0;
  }

  pages(mayMatter?: PageFilter): readonly PageEvidence[] {
    return this.#gather((handle) => this.#pagesOf(handle, mayMatter));
  }

  #pagesOf(handle: number, mayMatter: PageFilter | undefined): readonly PageEvidence[] {
    if (this.#answer === undefined || mayMatter === undefined || handle !== this.handle) {
      return this.#index.pageUrls(handle);
    }
    return this.#answer.pages(mayMatter);
  }

  filteringCategories(): readonly string[] {
    return this.#gather((handle) => this.#index.filteringCategories(handle));
  }

  /** Collects values from the host's record and its parents' records, the nearest first. */
  #gather<T>(of: (handle: number) => readonly T[]): readonly T[] {
    const records = this.#parents();
    if (records.length === 0) return this.found ? of(this.#own) : NOTHING;
    const all: T[] = this.found ? [...of(this.#own)] : [];
    for (const { handle } of records) all.push(...of(handle));
    return all;
  }

  /** The records of the key's parents, the nearest first. */
  #parents(): readonly ParentRecord[] {
    this.#parentRecords ??= this.#classifiable ? recordsAbove(this.#index, this.#key) : NOTHING;
    return this.#parentRecords;
  }
}

/**
 * Returns the records of a key's parents, the nearest first. Most keys have none, and a lookup in the index is cheaper than one in the Public
 * Suffix List. So the list is asked where the parents end only if a record or damage was found: above them, neither matters.
 */
function recordsAbove(index: Index, key: string): readonly ParentRecord[] {
  let records: ParentRecord[] | undefined;
  const last = key.lastIndexOf('.');
  for (let dot = key.indexOf('.'); dot < last; dot = key.indexOf('.', dot + 1)) {
    const domain = key.slice(dot + 1);
    const handle = findParent(index, key, domain);
    if (handle === NO_RECORD) continue;
    records ??= [];
    records.push({ domain, handle });
  }
  if (records === undefined) return NOTHING;
  const parents = parentDomains(key);
  return records.filter(({ domain }) => parents.includes(domain));
}

/** Looks up a domain above a key. Damage is no failure if the domain is not a parent of the key, such as a public suffix. */
function findParent(index: Index, key: string, domain: string): RecordHandle {
  try {
    return index.find(domain);
  } catch (error) {
    const isDamage = error instanceof PagegateError && error.code === 'record_corrupt';
    if (!isDamage || parentDomains(key).includes(domain)) throw error;
    return NO_RECORD;
  }
}
