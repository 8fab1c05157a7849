/**
 * What the index knows about a host, in the form the policy asks for it; parents are looked up only when they are asked for. Which
 * record answers is another matter: a parent that answers for a host does not make the host a classified one.
 */
import { parents } from '../domain/public-suffix.ts';
import type { Target } from '../domain/target.ts';
import { type Index, NOT_FOUND } from '../index/read.ts';
import type { Evidence, PageEvidence, PageFilter } from '../policy/types.ts';

const NOTHING: readonly never[] = [];
const PAGES = '"page_types":{';
const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACE = 0x7d;

/** Where the beginning of the answer is kept, whose record is the evidence's `handle`. */
export interface AnswerHead {
  /** `{"domain":"…","found":true[,"language":"…"],"page_types":{…}`. */
  readonly head: string;
}

/** The record that answers for a target, and the evidence around it. */
export class RecordEvidence implements Evidence {
  readonly found: boolean;
  /** The record that answers, the host's own or a parent's; NOT_FOUND where there is none. */
  readonly handle: number;
  /** The domain to report: the key, or the parent that answers for it. */
  readonly domain: string;
  /** The host's own record. */
  readonly #own: number;
  readonly #index: Index;
  readonly #key: string;
  readonly #classifiable: boolean;
  readonly #answer: AnswerHead | undefined;
  #parentHandles: readonly number[] | undefined;

  /** `answer`, where one is begun before the evidence is asked for pages, spares the record a second reading. */
  constructor(index: Index, target: Target, subdomains: 'exact' | 'parent', answer?: AnswerHead) {
    this.#index = index;
    this.#answer = answer;
    this.#key = target.key;
    this.#classifiable = target.classifiable;
    this.#own = target.classifiable ? index.find(target.key) : NOT_FOUND;
    this.found = this.#own !== NOT_FOUND;
    let handle = this.#own;
    let domain = target.key;
    if (handle === NOT_FOUND && target.classifiable && subdomains === 'parent') {
      for (const parent of parents(target.key)) {
        handle = index.find(parent);
        if (handle === NOT_FOUND) continue;
        domain = parent;
        break;
      }
    }
    this.handle = handle;
    this.domain = domain;
  }

  /** Whether a record answers: what an answer calls `found`. */
  get answered(): boolean {
    return this.handle !== NOT_FOUND;
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
    return pagesInHead(this.#answer.head, mayMatter) ?? this.#index.pageUrls(handle);
  }

  filteringCategories(): readonly string[] {
    return this.#gather((handle) => this.#index.filteringCategories(handle));
  }

  /** What the host's record and its parents' records say, the nearest first. */
  #gather<T>(of: (handle: number) => readonly T[]): readonly T[] {
    const handles = this.#parents();
    if (handles.length === 0) return this.found ? of(this.#own) : NOTHING;
    const all: T[] = this.found ? [...of(this.#own)] : [];
    for (const handle of handles) all.push(...of(handle));
    return all;
  }

  /** The records of the key's parents, the nearest first. */
  #parents(): readonly number[] {
    if (this.#parentHandles === undefined) {
      const keys = this.#classifiable ? parents(this.#key) : [];
      this.#parentHandles = keys.map((key) => this.#index.find(key)).filter((handle) => handle !== NOT_FOUND);
    }
    return this.#parentHandles;
  }
}

/** The pages in the head of an answer that may matter; undefined where a URL is not written as it is. */
function pagesInHead(head: string, mayMatter: PageFilter): PageEvidence[] | undefined {
  if (head.includes('\\')) return undefined;
  const pages: PageEvidence[] = [];
  let at = head.indexOf(PAGES) + PAGES.length;
  while (head.charCodeAt(at) !== CLOSING_BRACE) {
    // A name is so short that a call out of JavaScript takes longer than the look itself.
    let typeEnd = at + 1;
    while (typeEnd < head.length && head.charCodeAt(typeEnd) !== QUOTE) typeEnd++;
    const start = typeEnd + '":"'.length;
    const end = head.indexOf('"', start);
    if (mayMatter(head, start, end)) pages.push({ type: head.slice(at + 1, typeEnd), url: head.slice(start, end) });
    at = head.charCodeAt(end + 1) === COMMA ? end + 2 : end + 1;
  }
  return pages;
}
