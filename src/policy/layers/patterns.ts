/** Pattern rules: what a URL's words say about a page that no evidence speaks of. */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import type { Condition, PolicyDocument, RuleEntry } from '../documents.ts';
import type { Verdict } from '../types.ts';
import { countingContexts, POSITION } from '../url/contexts.ts';
import { fragmentRoute, pathBeforeQuery, shorterPath } from '../url/hidden-parts.ts';
import type { Parameter } from '../url/parameters.ts';
import { beginsQuery, nameEnd, staticDot, withoutDots } from '../url/segments.ts';
import type { Subject } from '../url/subject.ts';
import type { TokenIndex } from '../url/tokens.ts';
import { Words } from '../url/words.ts';
import { type Ask, firstMatch, invalid, strictestFirst, verdictOf } from './layer.ts';
import { PATTERN_CHECKS, type PatternCheck } from './pattern-checks.ts';

interface PatternRule {
  readonly verdict: Verdict;
  readonly check: PatternCheck | undefined;
  readonly entry: RuleEntry;
}

/** What a rule asks of a word in the path; -1 where it asks for no list. */
interface SegmentCondition {
  readonly rule: number;
  readonly mask: number;
  readonly also: number;
  readonly alsoMask: number;
  readonly hostLabel: number;
}

/** What a rule asks of the host's first label: the contexts of the path in which it counts. */
interface HostCondition {
  readonly rule: number;
  readonly contexts: number;
}

/** What a rule asks of a query parameter; -1 where any value will do. */
interface ParameterCondition {
  readonly rule: number;
  readonly value: number;
  readonly minValueLength: number;
}

/** For each token list what rules ask of it, by where it stands. */
class ConditionTable {
  readonly segment: (SegmentCondition[] | undefined)[] = [];
  readonly host: (HostCondition[] | undefined)[] = [];
  readonly parameter: (ParameterCondition[] | undefined)[] = [];
  readonly file: (number[] | undefined)[] = [];
  readonly extension: (number[] | undefined)[] = [];
  /** For each token list whether a condition asks for it in a path. */
  readonly inPath: Uint8Array;
  readonly #tokens: TokenIndex;

  constructor(tokens: TokenIndex) {
    this.#tokens = tokens;
    this.inPath = new Uint8Array(tokens.names.length);
  }

  add(rule: number, condition: Condition): void {
    const list = (name: string | undefined): number => (name === undefined ? -1 : this.#tokens.ordinal(name));
    const contexts = countingContexts(condition.not_in ?? [], condition.even_in ?? []);
    const segment = list(condition.segment);
    const also = list(condition.also);
    const hostLabel = list(condition.host_label);
    if (segment >= 0) {
      const mask = contexts << POSITION[condition.at ?? 'any'];
      push(this.segment, segment, { rule, mask, also, alsoMask: contexts << POSITION.any, hostLabel });
      this.inPath[segment] = 1;
      if (also >= 0) this.inPath[also] = 1;
    } else if (hostLabel >= 0) push(this.host, hostLabel, { rule, contexts });
    const minValueLength = condition.min_value_length ?? 0;
    const parameter = { rule, value: list(condition.query_value), minValueLength };
    push(this.parameter, list(condition.query_name ?? condition.query_flag), parameter);
    push(this.file, list(condition.file), rule);
    push(this.extension, list(condition.extension), rule);
  }
}

function push<T>(table: (T[] | undefined)[], list: number, value: T): void {
  if (list < 0) return;
  const values = table[list] ?? [];
  table[list] = values;
  values.push(value);
}

export class PatternLayer {
  readonly #rules: readonly PatternRule[];
  readonly #checks: readonly PatternRule[];
  readonly #table: ConditionTable;
  readonly #tokens: TokenIndex;
  readonly #words: Words;
  readonly #lists: Readonly<Record<'titleName' | 'pathName' | 'controllerName' | 'index', number>>;
  /** For each rule whether one of its conditions holds. */
  readonly #hits: Uint8Array;
  #hasHits = false;

  /** @throws PagegateError policy_invalid */
  constructor(document: PolicyDocument, tokens: TokenIndex) {
    const list = (name: string): number => tokens.ordinal(name);
    this.#rules = strictestFirst(compileRules(document.rules));
    this.#checks = this.#rules.filter((rule) => rule.check !== undefined);
    this.#tokens = tokens;
    this.#table = new ConditionTable(tokens);
    for (const [at, { entry }] of this.#rules.entries()) {
      for (const condition of entry.when ?? []) this.#table.add(at, condition);
    }
    this.#hits = new Uint8Array(this.#rules.length);
    this.#lists = {
      titleName: list('title_name'),
      pathName: list('path_name'),
      controllerName: list('controller_name'),
      index: list('index'),
    };
    const places = {
      reading: list('reading'),
      workingPlace: list('working_place'),
      topicPlace: list('topic_place'),
      titleOpener: list('title_opener'),
      sourceTree: list('source_tree'),
      index: list('index'),
    };
    this.#words = new Words(tokens, places, this.#table.inPath);
  }

  /** The first rule that matches, deny before flag; on a page verified as good, by what stands behind its path alone. */
  ask(subject: Subject, all: Verdict[] | undefined): Verdict | undefined {
    const { url } = subject;
    if (subject.isOnReadablePage) {
      if (url.query === '' && url.fragment === '') return undefined;
      this.#readBeyondPath(subject);
    } else this.#read(subject);
    this.#hitWords();
    const rules = this.#hasHits ? this.#rules : this.#checks;
    const isHit = (rule: PatternRule, at: number): boolean =>
      (this.#hasHits && this.#hits[at] === 1) || rule.check?.(subject) === true;
    const verdict = firstMatch(rules, isHit, all);
    if (this.#hasHits) this.#hits.fill(0);
    this.#hasHits = false;
    this.#words.clear();
    return verdict;
  }

  #read(subject: Subject): void {
    const { url } = subject;
    this.#words.readHost(subject.host);
    this.#readPath(url);
    const route = fragmentRoute(url);
    if (route !== undefined) this.#words.readPath(route);
    this.#readParameters(subject, subject.parameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  #readBeyondPath(subject: Subject): void {
    const { url } = subject;
    const route = fragmentRoute(url);
    if (route !== undefined) {
      this.#words.readHost(subject.host);
      this.#words.readPath(url.decodedPath);
      this.#words.forget();
      this.#words.readPath(route);
    }
    this.#readParameters(subject, subject.ownParameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  /** Reads a path, and where a query in it has slashes, the path without them as well: its last segment is another one. */
  #readPath(url: CanonicalUrl): void {
    const words = this.#words;
    const shorter = shorterPath(url);
    if (shorter !== undefined) {
      words.readPathApart(shorter);
      this.#readFile(shorter, words.lastStart, words.lastEnd);
    }
    words.readPath(url.decodedPath);
    this.#readFile(url.decodedPath, words.lastStart, words.lastEnd);
  }

  #hit(rule: number): void {
    this.#hits[rule] = 1;
    this.#hasHits = true;
  }

  /** Marks the rules whose conditions on words of path and host hold. */
  #hitWords(): void {
    const { bits, touched, touchedCount, hostLists, context } = this.#words;
    for (let at = 0; at < touchedCount; at++) {
      const list = touched[at]!;
      for (const { rule, mask, also, alsoMask, hostLabel } of this.#table.segment[list] ?? []) {
        if ((bits[list]! & mask) === 0 || (also >= 0 && (bits[also]! & alsoMask) === 0)) continue;
        if (hostLabel < 0 || hostLists.includes(hostLabel)) this.#hit(rule);
      }
    }
    for (let at = 0; at < hostLists.length; at++) {
      for (const { rule, contexts } of this.#table.host[hostLists[at]!] ?? []) {
        if ((contexts & (1 << context)) !== 0) this.#hit(rule);
      }
    }
  }

  /** The last segment as a file, without its parameters and with them. */
  #readFile(path: string, start: number, end: number): void {
    const stop = nameStop(path, start, end);
    this.#readFileName(path, start, withoutDots(path, start, stop));
    if (stop < end) this.#readFileName(path, start, end);
  }

  /** A file: its whole name, and its extension. */
  #readFileName(path: string, start: number, stop: number): void {
    const dot = path.lastIndexOf('.', stop - 1);
    if (dot < start) return;
    const files = this.#tokens.find(path, start, stop);
    const extensions = dot > start ? this.#tokens.find(path, dot + 1, stop) : files;
    for (const list of files) for (const rule of this.#table.file[list] ?? []) this.#hit(rule);
    for (const list of extensions) for (const rule of this.#table.extension[list] ?? []) this.#hit(rule);
  }

  /** Whether a URL is the root, or the index file of the root. */
  #isFrontPage(url: CanonicalUrl): boolean {
    const path = pathBeforeQuery(url) ?? url.decodedPath;
    if (path.length <= 1) return true;
    const stop = nameEnd(path, 1, path.length);
    return !path.includes('/', 1) && path[stop] === '.' && this.#tokens.find(path, 1, stop).includes(this.#lists.index);
  }

  #readParameters({ url }: Subject, parameters: readonly Parameter[]): void {
    for (const { value, lists } of parameters) {
      if (lists.length === 0 || (lists.includes(this.#lists.titleName) && !value.includes(':'))) continue;
      if (lists.includes(this.#lists.pathName) && isPath(value) && this.#isFrontPage(url))
        this.#words.readPathApart(value);
      for (const list of lists) {
        const conditions = this.#table.parameter[list];
        if (conditions === undefined || (list === this.#lists.controllerName && !this.#isFrontPage(url))) continue;
        this.#readParameter(conditions, value);
      }
    }
  }

  #readParameter(conditions: readonly ParameterCondition[], value: string): void {
    let lists: readonly number[] | undefined;
    for (const condition of conditions) {
      if (this.#hits[condition.rule] === 1 || value.length < condition.minValueLength) continue;
      if (condition.value >= 0) {
        lists ??= this.#listsOfValue(value);
        if (!lists.includes(condition.value)) continue;
      }
      this.#hit(condition.rule);
    }
  }

  /** Token lists that a value, or one of its parts between slashes, colons and dots, is in. */
  #listsOfValue(value: string): readonly number[] {
    const whole = this.#tokens.find(value, 0, nameEnd(value, 0, value.length));
    if (isProgramName(value)) return whole;
    const fileDot = staticDot(value);
    let all: Set<number> | undefined;
    for (let start = 0, at = 0; at <= value.length; at++) {
      if (at < value.length && (at === fileDot || !isSeparator(value, at))) continue;
      if (at > start && at - start < value.length) {
        const part = this.#tokens.find(value, start, at);
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

export const patternVerdict: Ask = ({ patterns }, subject, all) => patterns.ask(subject, all);

function compileRules(rules: readonly RuleEntry[]): PatternRule[] {
  return rules
    .filter((entry) => entry.kind === 'pattern')
    .map((entry) => {
      const { id, verdict, note, check, when = [] } = entry;
      const factory = check === undefined ? undefined : PATTERN_CHECKS[check];
      if (check !== undefined && factory === undefined)
        throw invalid(id, `The pattern rule "${id}" names no check that exists.`);
      if (when.length === 0 && factory === undefined) throw invalid(id, `The rule "${id}" can never match.`);
      return { entry, verdict: verdictOf(verdict, 'rules', id, note), check: factory?.(entry) };
    });
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
