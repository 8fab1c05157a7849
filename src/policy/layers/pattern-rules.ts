/** The layer of pattern rules: judges a URL by the words of its path, query and host. */
import { DOT } from '../../bytes/ascii.ts';
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { invalidPolicy, type PolicyDocument, type RuleEntry } from '../documents.ts';
import type { Subject } from '../subject.ts';
import type { Verdict } from '../types.ts';
import { fragmentRoute, looseRoute } from '../url/hidden-parts.ts';
import type { HostFilter, HostMap } from '../url/host-map.ts';
import { afterLanguage } from '../url/languages.ts';
import { hasValueOf, isDate, isPath, listsOfValue, type Parameter } from '../url/parameters.ts';
import { readingsOf } from '../url/path-readings.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { lastLetterEnd, lastNamed, nameStop } from '../url/segments.ts';
import { compilePlaces, type HostPlaces } from '../words/path-contents.ts';
import { isAnyIn } from '../words/token-table.ts';
import { TOKEN_MAX_LENGTH, type TokenIndex } from '../words/tokens.ts';
import { CONTEXT } from '../words/word-contexts.ts';
import { Words } from '../words/words.ts';
import { type Ask, strictestFirst, verdictOf } from './layer.ts';
import { PATTERN_CHECKS, type PatternCheck } from './pattern-checks.ts';
import {
  ConditionTable,
  type FileCondition,
  hasConditions,
  type ParameterCondition,
  type SegmentCondition,
  type Table,
} from './pattern-conditions.ts';

interface PatternRule {
  readonly verdict: Verdict;
  readonly check: PatternCheck | undefined;
  readonly entry: RuleEntry;
}

interface CheckedRule {
  /** The index of the rule. */
  readonly rule: number;
  readonly check: PatternCheck;
}

const NO_RULE = -1;

/** Token lists with a special meaning in this layer, by their names in the policy. */
const SPECIAL_LISTS = {
  /** Parameters whose value is a title. Only a title with a colon, a wiki's own page, says what the page is for. */
  title: 'title_name',
  /** Parameters whose value is the path of a page on the root or its index file, and a search term elsewhere. */
  path: 'path_name',
  /** Parameters that name a controller on the root or its index file. */
  controller: 'controller_name',
  /** Parameters that name an action, possibly written like a program's name: `deleteItem`. */
  act: 'action_dispatch',
  /** Parameters whose value may be the id of a program. */
  programId: 'program_id_name',
  /** Pages whose parameters are search terms. */
  search: 'search_page',
  /** Words for a login. */
  login: 'login',
  /** A company's public pages. They are exempt on hosts that are denied as a whole. */
  open: 'open_page',
  /** Pages with text. Hosts with such a first label are exempt in the same way (`careers.example.com`). */
  text: 'text_page',
} as const;

/** The compiled pattern rules. Judges one URL at a time. */
export class PatternLayer {
  readonly #rules: readonly PatternRule[];
  /** The rules that have a check, in order. */
  readonly #checks: readonly CheckedRule[];
  readonly #table: ConditionTable;
  readonly #tokens: TokenIndex;
  readonly #words: Words;
  readonly #places: HostMap<HostPlaces>;
  readonly #lists: Readonly<Record<keyof typeof SPECIAL_LISTS, number>>;
  /** For each token list: 1 if parameters with such a name must be examined. */
  readonly #parameterLists: Uint8Array;
  /** For each rule: 1 if one of its conditions holds. */
  readonly #hits: Uint8Array;
  /** The first of these rules. */
  #firstHit = NO_RULE;
  /** Whether the words of the path were read, and with them the context that it announces. */
  #isPathRead = false;
  /** Whether the URL is a front page, see {@link #isFrontPage}; undefined if no condition has asked. */
  #onFrontPage: boolean | undefined;

  /** @throws PagegateError policy_invalid */
  constructor(document: PolicyDocument, tokens: TokenIndex, filter: HostFilter) {
    this.#rules = strictestFirst(compileRules(document.rules, tokens));
    this.#checks = this.#rules.flatMap(({ check }, rule) => (check === undefined ? [] : { rule, check }));
    this.#tokens = tokens;
    this.#table = new ConditionTable(tokens);
    for (const [at, { entry }] of this.#rules.entries()) {
      for (const condition of entry.when ?? []) this.#table.add(at, condition);
    }
    this.#hits = new Uint8Array(this.#rules.length);
    this.#places = compilePlaces(document.places, filter);
    const ordinals = Object.entries(SPECIAL_LISTS).map(([name, list]) => [name, tokens.ordinal(list)]);
    this.#lists = Object.fromEntries(ordinals) as Record<keyof typeof SPECIAL_LISTS, number>;
    this.#words = new Words(tokens, this.#table, this.#lists.open, filter);
    this.#parameterLists = this.#table.inQuery.slice();
    this.#parameterLists[this.#lists.path] = 1;
  }

  /** Returns the verdict of the first rule that matches, deny before flag. On an allowed verified page, only query and fragment are judged. */
  ask(subject: Subject, all: Verdict[] | undefined): Verdict | undefined {
    const { url } = subject;
    if (subject.isOnReadablePage) {
      if (url.query === '' && url.fragment === '') return undefined;
      this.#readBeyondPath(subject);
    } else this.#read(subject);
    this.#hitSegments(subject);
    if (all !== undefined) this.#hitChecks(subject);
    const first = all === undefined ? this.#firstMatch(subject) : this.#firstHit;
    all?.push(...this.#rules.filter((_rule, at) => this.#hits[at] === 1).map(({ verdict }) => verdict));
    if (this.#firstHit !== NO_RULE) this.#clearHits();
    this.#firstHit = NO_RULE;
    this.#onFrontPage = undefined;
    this.#words.clear();
    // An array is slow with an index that it never has.
    return first === NO_RULE ? undefined : this.#rules[first]!.verdict;
  }

  /** Returns the index of the first rule that matches. Asks only the checks that can change it; none of them is about the host. */
  #firstMatch(subject: Subject): number {
    if (!subject.isBeyondHost) return this.#firstHit;
    for (let at = 0; at < this.#checks.length; at++) {
      const { rule, check } = this.#checks[at]!;
      if (this.#firstHit !== NO_RULE && this.#firstHit < rule) break;
      if (check(subject)) return rule;
    }
    return this.#firstHit;
  }

  #clearHits(): void {
    // Much faster than `fill` for so few.
    for (let at = this.#firstHit; at < this.#hits.length; at++) this.#hits[at] = 0;
  }

  #hitChecks(subject: Subject): void {
    for (const { rule, check } of this.#checks) if (check(subject)) this.#hit(rule);
  }

  /**
   * Returns the context after host and path: whether they announce reading matter. A public page of a company counts as reading matter.
   * Known path contents of the host count, except those of a parent of the `listed` host. The host's own name is ignored if it is the
   * `listed` one.
   */
  contextOf({ host, url }: Subject, listed: string): number {
    const words = this.#words;
    const nearest = this.#places.find(host);
    const places = nearest !== undefined && nearest.host.length >= listed.length ? nearest : undefined;
    if (host !== listed) words.readHost(host);
    let context: number = CONTEXT.source;
    words.readPath(url.decodedPath, places, () => {
      const isOpen = words.met.has(this.#lists.open) || words.hostLists.includes(this.#lists.text);
      context = Math.min(context, isOpen ? Math.max(words.context, CONTEXT.reading) : words.context);
      words.met.clear();
    });
    words.clear();
    return context;
  }

  #read(subject: Subject): void {
    const { url, host } = subject;
    const words = this.#words;
    words.readHost(host);
    // The context depends on all segments of the path. Compute it only if a condition uses a word of the host.
    const needsContext = hasConditions(this.#table.host, words.hostLists);
    const segments = this.#tokens.segments(url.decodedPath);
    const hasFile = this.#hasFileWords(segments);
    this.#isPathRead = false;
    if (needsContext || hasFile) {
      let context: number = CONTEXT.source;
      this.#readPath(subject, (read) => {
        this.#readFile(read);
        if (needsContext) context = Math.min(context, words.context);
      });
      if (needsContext) this.#hitHost(url, context);
    } else if (!words.hasTooFewWords(segments)) this.#readPath(subject);
    if (url.fragment !== '') this.#readRoute(subject);
    this.#readParameters(subject, subject.parameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  /** Reads query and fragment, but not the path. */
  #readBeyondPath(subject: Subject): void {
    const { url, host } = subject;
    this.#isPathRead = true;
    // A route is a path in the context of host and path, so read those first and forget their words.
    if (url.fragment !== '' || subject.queryParameters.some((one) => this.#isRoute(one, url))) {
      this.#words.readHost(host);
      this.#readPath(subject);
      this.#words.forget();
      this.#readRoute(subject);
    }
    this.#readParameters(subject, subject.queryParameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  /** Reads a route in the fragment as a path. The context that it announces applies only to itself, because no server sees it. */
  #readRoute(subject: Subject): void {
    const route = fragmentRoute(subject.url) ?? this.#frontRoute(subject.url);
    if (route !== undefined) this.#readApart(route, subject);
  }

  /** Reads a path that only some clients see, in the context that host and path announce. */
  #readApart(route: string, subject: Subject): void {
    if (!this.#isPathRead) this.#readPath(subject);
    this.#words.readPathApart(route);
  }

  #readPath({ url, host }: Subject, afterReading?: (segments: PathSegments) => void): void {
    this.#words.readPath(url.decodedPath, this.#places.find(host), afterReading);
    this.#isPathRead = true;
  }

  /**
   * Returns the route in the fragment of a front page that lacks its leading slash: a single word for a login (`/#login`), or several
   * segments (`/#user/login`). Any other fragment is a heading.
   */
  #frontRoute(url: CanonicalUrl): string | undefined {
    if (url.fragment === '' || !this.#isFrontPage(url)) return undefined;
    const route = looseRoute(url);
    // Trailing signs and parameters do not change the route. A parameter itself (`#a=b`) is not a route.
    const stop = nameStop(route, 1, route.length);
    const name = route.slice(1, lastLetterEnd(route, 1, stop));
    if (name.includes('=')) return undefined;
    const isLogin = ({ count, lists }: PathSegments): boolean => count === 1 && lists[0]!.includes(this.#lists.login);
    return name.includes('/') || this.#readings(route).some((reading) => isLogin(this.#tokens.segments(reading)))
      ? route
      : undefined;
  }

  /** Returns the paths that different servers may read in a path; see {@link readingsOf}. */
  #readings(path: string): readonly string[] {
    return readingsOf(path, this.#tokens.segments(path)) ?? [path];
  }

  #hit(rule: number): void {
    this.#hits[rule] = 1;
    if (this.#firstHit === NO_RULE || rule < this.#firstHit) this.#firstHit = rule;
  }

  /** Marks the rules whose conditions on words in the path hold. */
  #hitSegments(subject: Subject): void {
    const { tables, touched, touchedCount } = this.#words.met;
    for (let at = 0; at < touchedCount; at++) {
      const list = touched[at]!;
      const conditions = this.#table.segment[list];
      if (conditions === undefined) continue;
      const first = tables[0][list]!;
      const second = tables[1][list]!;
      for (let index = 0; index < conditions.length; index++) {
        const condition = conditions[index]!;
        const bits = condition.table === 0 ? first : second;
        if ((bits & condition.mask) !== 0 && this.#holds(condition, list, subject)) this.#hit(condition.rule);
      }
    }
  }

  /** Whether the further requirements of a condition hold: another word, the host's label and a query parameter. */
  #holds({ also, alsoMask, hostLabel, parameter }: SegmentCondition, list: number, subject: Subject): boolean {
    const { met, hostLists } = this.#words;
    if (parameter >= 0 && !hasValueOf(subject.listedParameters, parameter)) return false;
    if (also >= 0 && ((met.tables[0][also]! & alsoMask) === 0 || !met.areApart(list, also))) return false;
    return hostLabel < 0 || hostLists.includes(hostLabel);
  }

  /** Marks the rules whose conditions on the host's first label hold in the context after the path. */
  #hitHost(url: CanonicalUrl, context: number): void {
    for (const list of this.#words.hostLists) {
      for (const { rule, contexts, isRoot } of this.#table.host[list] ?? [])
        if ((contexts & (1 << context)) !== 0 && (!isRoot || this.#isFrontPage(url))) this.#hit(rule);
    }
  }

  /** Whether a condition uses the name or the extension of the last segment as a file. True if that needs a closer look. */
  #hasFileWords(segments: PathSegments): boolean {
    const { allCount, dots, signs, isCut } = segments;
    if (isCut || (signs & SEGMENT_HAS.odd) !== 0) return true;
    if (allCount === 0 || dots[allCount - 1]! < 0) return false;
    const files = segments.listsOfLastFile();
    const extensions = this.#listsOfExtension(segments) ?? files;
    return hasConditions(this.#table.file, files) || hasConditions(this.#table.extension, extensions);
  }

  /** Returns the token lists of the extension of the last segment; undefined if its only dot comes first. */
  #listsOfExtension({ path, allCount, starts, ends, dots }: PathSegments): readonly number[] | undefined {
    const last = allCount - 1;
    const dot = dots[last]!;
    return dot > starts[last]! ? this.#tokens.find(path, dot + 1, ends[last]!) : undefined;
  }

  /** Reads the last segment as a file: its whole name and its extension. If it has a `;`, also every longer name up to a later `;` or the end. */
  #readFile(segments: PathSegments): void {
    const { whole, allCount, dots } = segments;
    if (allCount === 0) return;
    if (dots[allCount - 1]! >= 0) this.#readNamed(segments.listsOfLastFile(), this.#listsOfExtension(segments));
    if (!segments.isCut || !whole.includes(';')) return;
    const file = lastNamed(whole);
    for (let stop = file.indexOf(';'); stop >= 0; ) {
      stop = file.indexOf(';', stop + 1);
      this.#readFileName(file, lastLetterEnd(file, 0, stop < 0 ? file.length : stop));
    }
  }

  #readFileName(file: string, stop: number): void {
    // No token is longer.
    const first = Math.max(0, stop - TOKEN_MAX_LENGTH);
    let dot = stop - 1;
    while (dot >= first && file.charCodeAt(dot) !== DOT) dot--;
    if (dot < first) return;
    this.#readNamed(this.#tokens.find(file, 0, stop), dot > 0 ? this.#tokens.find(file, dot + 1, stop) : undefined);
  }

  /** Marks rules by the token lists of a file's name and extension. The extension is the whole name if its only dot comes first (`.env`). */
  #readNamed(files: readonly number[], extensions: readonly number[] = files): void {
    const context = 1 << this.#words.fileContext;
    for (let at = 0; at < files.length; at++) this.#hitFile(this.#table.file[files[at]!], context);
    for (let at = 0; at < extensions.length; at++) this.#hitFile(this.#table.extension[extensions[at]!], context);
  }

  #hitFile(conditions: readonly FileCondition[] | undefined, context: number): void {
    if (conditions === undefined) return;
    for (const { rule, contexts } of conditions) if ((contexts & context) !== 0) this.#hit(rule);
  }

  /** Whether a URL is the root or its index file, perhaps after a language, in at least one reading of its path. */
  #isFrontPage({ decodedPath }: CanonicalUrl): boolean {
    this.#onFrontPage ??= this.#readings(decodedPath).some((reading) => {
      const segments = this.#tokens.segments(reading);
      return segments.count === 0 || afterLanguage(segments.path) >= segments.end;
    });
    return this.#onFrontPage;
  }

  /** Whether the parameters are search terms, in all readings of the path. */
  #isSearchPage({ decodedPath }: CanonicalUrl): boolean {
    const segments = this.#tokens.segments(decodedPath);
    const readings = readingsOf(decodedPath, segments);
    if (readings === undefined) return this.#endsInSearchPage(segments);
    return readings.every((reading) => this.#endsInSearchPage(this.#tokens.segments(reading)));
  }

  #endsInSearchPage({ lists, count }: PathSegments): boolean {
    return count > 0 && lists[count - 1]!.includes(this.#lists.search);
  }

  /** Whether the name of a parameter is the path of a page. Without a leading slash, only on a front page (`index.php?user/login`). */
  #isRoute(parameter: Parameter, url: CanonicalUrl): boolean {
    if (!parameter.hasPlaceSign) return false;
    if (parameter.beginsWithSlash) return true;
    const { name, hasValue } = parameter;
    return (!hasValue || name.includes('&')) && isPath(beforeAmpersand(name)) && this.#isFrontPage(url);
  }

  /** Reads the name of a parameter as a path, also without what follows an escaped `&`: some servers read a parameter there. */
  #readRouteName(name: string, subject: Subject): void {
    this.#readApart(name, subject);
    const path = beforeAmpersand(name);
    if (path !== name) this.#readApart(path, subject);
  }

  #readParameters(subject: Subject, parameters: readonly Parameter[]): void {
    if (parameters.length === 0) return;
    for (let at = 0; at < parameters.length; at++) {
      const parameter = parameters[at]!;
      if (this.#isRoute(parameter, subject.url)) this.#readRouteName(parameter.name, subject);
      if (isAnyIn(parameter.lists, this.#parameterLists)) this.#readParameter(parameter, subject);
    }
  }

  /** Marks the rules whose conditions on a parameter hold, and reads its value as a path if it is one. */
  #readParameter({ lists, value }: Parameter, subject: Subject): void {
    const { url } = subject;
    const isTitle = (lists.includes(this.#lists.title) && !value.includes(':')) || this.#isSearchPage(url);
    const context = 1 << (isTitle ? CONTEXT.title : CONTEXT.none);
    if (lists.includes(this.#lists.path) && isPath(value) && this.#isFrontPage(url)) this.#readApart(value, subject);
    let words: readonly number[] | undefined;
    for (const list of lists) {
      const conditions = this.#table.parameter[list];
      if (conditions === undefined || (list === this.#lists.controller && !this.#isFrontPage(url))) continue;
      const { anyValue, byValue } = conditions;
      this.#hitParameter(anyValue, value, context);
      if (byValue === undefined) continue;
      words ??= listsOfValue(value, this.#tokens, lists.includes(this.#lists.programId));
      this.#hitWords(byValue, words, value, context);
      const act = list === this.#lists.act ? this.#words.readAct(value) : undefined;
      if (act === undefined) continue;
      this.#hitWords(byValue, act.lists, value, context);
      this.#hitWords(byValue, act.parts, value, context);
    }
  }

  /** Marks the rules whose conditions on a word of a parameter's value hold, for words that are in these lists. */
  #hitWords(byValue: Table<ParameterCondition>, lists: readonly number[], value: string, context: number): void {
    for (let at = 0; at < lists.length; at++) this.#hitParameter(byValue[lists[at]!], value, context);
  }

  #hitParameter(conditions: readonly ParameterCondition[] | undefined, value: string, context: number): void {
    if (conditions === undefined) return;
    for (const { rule, contexts, minValueLength, butDates } of conditions) {
      if ((contexts & context) === 0 || value.length < minValueLength) continue;
      if (!butDates || !isDate(value)) this.#hit(rule);
    }
  }
}

export const patternVerdict: Ask<{ readonly patterns: PatternLayer }> = ({ patterns }, subject, all) =>
  patterns.ask(subject, all);

function compileRules(rules: readonly RuleEntry[], tokens: TokenIndex): PatternRule[] {
  return rules
    .filter((entry) => entry.kind === 'pattern')
    .map((entry) => {
      const { id, verdict, note, check, when = [] } = entry;
      const factory = check === undefined ? undefined : PATTERN_CHECKS[check];
      if (check !== undefined && factory === undefined)
        throw invalidPolicy(id, `The pattern rule "${id}" names no check that exists.`);
      if (when.length === 0 && factory === undefined) throw invalidPolicy(id, `The rule "${id}" can never match.`);
      return { entry, verdict: verdictOf(verdict, 'rules', id, note), check: factory?.(entry, tokens) };
    });
}

/** Returns the part of a name before an escaped `&`; the whole name if there is none. */
function beforeAmpersand(name: string): string {
  const stop = name.indexOf('&');
  return stop > 0 ? name.slice(0, stop) : name;
}
