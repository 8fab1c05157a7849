/** Pattern rules: what a URL's words tell about a page that no evidence speaks of. */
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import type { Condition } from './documents.ts';
import { Facts, fragmentRoute, pathBeforeQuery, type ReadingLists, SEEN, shorterPath } from './facts.ts';
import { eachParameter, fragmentQuery, wholeQuery } from './parameters.ts';
import { beginsQuery, nameEnd, staticDot, withoutDots } from './segments.ts';
import type { TokenIndex } from './tokens.ts';
import type { Verdict } from './types.ts';

/** A condition with its token lists as ordinals; -1 where it asks for none. */
export interface CompiledCondition {
  readonly segment: number;
  readonly mask: number;
  readonly also: number;
  readonly alsoMask: number;
  readonly hostLabel: number;
  readonly notReading: boolean;
  readonly file: number;
  readonly extension: number;
  readonly queryName: number;
  readonly queryValue: number;
  readonly minValueLength: number;
}

export interface PatternRule {
  readonly verdict: Verdict;
  readonly when: readonly CompiledCondition[];
  readonly check: ((url: CanonicalUrl) => boolean) | undefined;
}

/** What a rule asks of a query parameter; -1 where any value will do. */
interface QueryCondition {
  readonly rule: number;
  readonly value: number;
  readonly minValueLength: number;
}

export type ListLookup = (name: string) => number;

export function compileCondition(condition: Condition, list: ListLookup): CompiledCondition {
  const ordinal = (name: string | undefined): number => (name === undefined ? -1 : list(name));
  const at = condition.at ?? 'any';
  const unread = condition.not_reading === true;
  const before = unread ? 'unread_' : condition.not_documentation === true ? 'undocumented_' : '';
  const quoted = condition.even_quoted === true ? SEEN.quoted : 0;
  return {
    segment: ordinal(condition.segment),
    mask: (condition.not_topic === true ? SEEN.untopical_any : SEEN[`${before}${at}`]) | quoted,
    also: ordinal(condition.also),
    alsoMask: SEEN[`${before}any`] | quoted,
    hostLabel: ordinal(condition.host_label),
    notReading: unread,
    file: ordinal(condition.file),
    extension: ordinal(condition.extension),
    queryName: ordinal(condition.query_name ?? condition.query_flag),
    queryValue: ordinal(condition.query_value),
    minValueLength: condition.min_value_length ?? 0,
  };
}

export class PatternMatcher {
  /** Deny before flag, otherwise in the order of the file. */
  readonly rules: readonly PatternRule[];
  private readonly tokens: TokenIndex;
  private readonly titleName: number;
  private readonly pathName: number;
  private readonly controllerName: number;
  private readonly index: number;
  private readonly facts: Facts;
  /** For each token list the conditions that ask for it as the name of a query parameter. */
  private readonly byName: (QueryCondition[] | undefined)[];
  /** For each token list whether a condition asks for it as a file or an extension. */
  private readonly fileLists: Uint8Array;
  /** For each rule whether its file or query conditions hold. */
  private readonly hits: Uint8Array;
  private hasHits = false;
  private readonly checks: readonly PatternRule[];

  constructor(rules: readonly PatternRule[], tokens: TokenIndex, lists: ReadingLists) {
    this.rules = [
      ...rules.filter((r) => r.verdict.verdict === 'deny'),
      ...rules.filter((r) => r.verdict.verdict !== 'deny'),
    ];
    this.tokens = tokens;
    this.titleName = lists.titleName;
    this.pathName = lists.pathName;
    this.controllerName = lists.controllerName;
    this.index = lists.index;
    this.byName = new Array(tokens.names.length).fill(undefined);
    this.hits = new Uint8Array(this.rules.length);
    this.checks = this.rules.filter((rule) => rule.check !== undefined);
    this.fileLists = new Uint8Array(tokens.names.length);
    const relevant = new Uint8Array(tokens.names.length);
    for (const [rule, { when }] of this.rules.entries()) {
      for (const condition of when) {
        const { queryName, queryValue, minValueLength } = condition;
        if (queryName >= 0) {
          const conditions = this.byName[queryName] ?? [];
          this.byName[queryName] = conditions;
          conditions.push({ rule, value: queryValue, minValueLength });
        }
        for (const list of [condition.segment, condition.hostLabel]) if (list >= 0) relevant[list] = 1;
        for (const list of [condition.file, condition.extension]) if (list >= 0) this.fileLists[list] = 1;
      }
    }
    this.facts = new Facts(tokens, lists, relevant);
  }

  /** Calls back for every rule that matches, deny before flag, until the callback answers true. */
  match(url: CanonicalUrl, host: string, visit: (rule: PatternRule) => boolean): void {
    const { facts } = this;
    facts.readHost(host);
    this.readPath(url);
    const route = fragmentRoute(url);
    if (route !== undefined) facts.readPath(route);
    const query = wholeQuery(url);
    if (query !== '') this.readQuery(query, url);
    const routeQuery = fragmentQuery(url);
    if (routeQuery !== '') this.readQuery(routeQuery, url);
    this.report(url, visit);
    facts.clear();
  }

  /** Reads a path, and where a query in it has slashes, the path without them as well: its last segment is another one. */
  private readPath(url: CanonicalUrl): void {
    const { facts } = this;
    const shorter = shorterPath(url);
    if (shorter !== undefined) {
      facts.readPathApart(shorter);
      this.readFile(shorter, facts.lastStart, facts.lastEnd);
    }
    facts.readPath(url.decodedPath);
    this.readFile(url.decodedPath, facts.lastStart, facts.lastEnd);
  }

  /** As {@link match}, but only by what query and fragment route say: for a page whose path is known to be good. */
  matchBeyondPath(url: CanonicalUrl, host: string, visit: (rule: PatternRule) => boolean): void {
    const route = fragmentRoute(url);
    const routeQuery = fragmentQuery(url);
    if (url.query === '' && route === undefined && routeQuery === '') return;
    const { facts } = this;
    if (route !== undefined) {
      facts.readHost(host);
      facts.readPath(url.decodedPath);
      facts.keepReading();
      facts.readPath(route);
    }
    if (url.query !== '') this.readQuery(url.query, url);
    if (routeQuery !== '') this.readQuery(routeQuery, url);
    this.report(url, visit);
    facts.clear();
  }

  private report(url: CanonicalUrl, visit: (rule: PatternRule) => boolean): void {
    const { hits } = this;
    const { isRelevant } = this.facts;
    const rules = isRelevant || this.hasHits ? this.rules : this.checks;
    for (let at = 0; at < rules.length; at++) {
      const rule = rules[at]!;
      const isHit =
        (this.hasHits && hits[at] === 1) || (isRelevant && this.holdsAny(rule)) || rule.check?.(url) === true;
      if (isHit && visit(rule)) break;
    }
    if (this.hasHits) hits.fill(0);
    this.hasHits = false;
  }

  private hit(rule: number): void {
    this.hits[rule] = 1;
    this.hasHits = true;
  }

  private holdsAny(rule: PatternRule): boolean {
    const { bits, reading } = this.facts;
    for (const condition of rule.when) {
      const { segment, hostLabel } = condition;
      if (segment >= 0) {
        if ((bits[segment]! & condition.mask) === 0) continue;
        if (condition.also >= 0 && (bits[condition.also]! & condition.alsoMask) === 0) continue;
        if (hostLabel >= 0 && (bits[hostLabel]! & SEEN.host) === 0) continue;
        return true;
      }
      if (hostLabel >= 0 && (bits[hostLabel]! & SEEN.host) !== 0 && !(condition.notReading && reading)) return true;
    }
    return false;
  }

  /** The last segment as a file, without its parameters and with them. */
  private readFile(path: string, start: number, end: number): void {
    const stop = nameStop(path, start, end);
    this.readFileName(path, start, withoutDots(path, start, stop));
    if (stop < end) this.readFileName(path, start, end);
  }

  /** A file: its whole name, and its extension. */
  private readFileName(path: string, start: number, stop: number): void {
    const dot = path.lastIndexOf('.', stop - 1);
    if (dot < start) return;
    const files = this.tokens.find(path, start, stop);
    const extensions = dot > start ? this.tokens.find(path, dot + 1, stop) : files;
    if (!this.concernsFile(files) && !this.concernsFile(extensions)) return;
    for (const [at, rule] of this.rules.entries()) {
      if (rule.when.some((condition) => files.includes(condition.file) || extensions.includes(condition.extension))) {
        this.hit(at);
      }
    }
  }

  private concernsFile(lists: readonly number[]): boolean {
    for (let at = 0; at < lists.length; at++) if (this.fileLists[lists[at]!] === 1) return true;
    return false;
  }

  /** Whether a URL is the root, or the index file of the root. */
  private isFrontPage(url: CanonicalUrl): boolean {
    const path = pathBeforeQuery(url) ?? url.decodedPath;
    if (path.length <= 1) return true;
    const stop = nameEnd(path, 1, path.length);
    return !path.includes('/', 1) && path[stop] === '.' && this.tokens.find(path, 1, stop).includes(this.index);
  }

  private readQuery(query: string, url: CanonicalUrl): void {
    eachParameter(query, (name, value) => {
      const lists = this.tokens.find(name, 0, name.length);
      if (lists.includes(this.titleName) && !value.includes(':')) return;
      if (lists.includes(this.pathName) && isPath(value) && this.isFrontPage(url)) this.facts.readPathApart(value);
      for (const list of lists) {
        const conditions = this.byName[list];
        if (conditions === undefined || (list === this.controllerName && !this.isFrontPage(url))) continue;
        this.readParameter(conditions, value);
      }
    });
  }

  private readParameter(conditions: readonly QueryCondition[], value: string): void {
    let lists: readonly number[] | undefined;
    for (const condition of conditions) {
      if (this.hits[condition.rule] === 1 || value.length < condition.minValueLength) continue;
      if (condition.value >= 0) {
        lists ??= this.listsOfValue(value);
        if (!lists.includes(condition.value)) continue;
      }
      this.hit(condition.rule);
    }
  }

  /** Token lists that a value, or one of its parts between slashes, colons and dots, is in. */
  private listsOfValue(value: string): readonly number[] {
    const whole = this.tokens.find(value, 0, nameEnd(value, 0, value.length));
    if (isProgramName(value)) return whole;
    const fileDot = staticDot(value);
    let all: Set<number> | undefined;
    for (let start = 0, at = 0; at <= value.length; at++) {
      if (at < value.length && (at === fileDot || !isSeparator(value, at))) continue;
      if (at > start && at - start < value.length) {
        const part = this.tokens.find(value, start, at);
        if (part.length > 0) {
          all ??= new Set(whole);
          for (const list of part) all.add(list);
        }
      }
      start = at + 1;
    }
    return all === undefined ? whole : [...all];
  }
}

/** Whether a value can be nothing but a path of the same site: `user/login`, but not `either/or of two`, nor an address. */
function isPath(value: string): boolean {
  return value.includes('/') && !/[\s:.]/.test(value);
}

/** Whether a value is the name of a program as app stores write it, a domain read backwards: `com.example.settings`. */
function isProgramName(value: string): boolean {
  return /^(?:com|org|net|io)(?:\.[a-z][a-z0-9_]*)+$/.test(value);
}

/** Whether a character parts the words of a value: slash, backslash, colon, dot, bar, comma, and what begins a query. */
function isSeparator(value: string, at: number): boolean {
  if (beginsQuery(value, at, value.length)) return true;
  const code = value.charCodeAt(at);
  return code === 0x2f || code === 0x5c || code === 0x3a || code === 0x2e || code === 0x7c || code === 0x2c;
}

/** Where a segment's parameters begin. */
function nameStop(path: string, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (path.charCodeAt(at) === 0x3b || beginsQuery(path, at, end)) return at;
  }
  return end;
}
