/** Pattern rules: what a URL's words say about a page that no evidence speaks of. */
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
import type { PathSegments } from '../url/path-segments.ts';
import { lastLetterEnd, lastNamed, nameStop } from '../url/segments.ts';
import { compilePlaces, type HostPlaces } from '../words/path-contents.ts';
import { isAnyIn } from '../words/token-table.ts';
import { TOKEN_MAX_LENGTH, type TokenIndex } from '../words/tokens.ts';
import { CONTEXT } from '../words/word-contexts.ts';
import { Words } from '../words/words.ts';
import { type Ask, firstMatch, strictestFirst, verdictOf } from './layer.ts';
import { PATTERN_CHECKS, type PatternCheck } from './pattern-checks.ts';
import {
  ConditionTable,
  type FileCondition,
  type ParameterCondition,
  type SegmentCondition,
} from './pattern-conditions.ts';

interface PatternRule {
  readonly verdict: Verdict;
  readonly check: PatternCheck | undefined;
  readonly entry: RuleEntry;
}

/** Token lists of query parameters with a sense of their own, by their names in the policy. */
const PARAMETER_LISTS = {
  /** They hold a title: only one of a wiki's own pages, with a colon, names what the page is for. */
  title: 'title_name',
  /** They hold the path of a page on the root or its index file, and are a search elsewhere. */
  path: 'path_name',
  /** They name a controller, on the root or its index file. */
  controller: 'controller_name',
  /** They name an act, written as the name of a program may be: `deleteItem`. */
  act: 'action_dispatch',
  /** They may hold the id of a program. */
  programId: 'program_id_name',
  /** A page on which parameters are words to search for. */
  search: 'search_page',
  /** Words for a login. */
  login: 'login',
  /** Pages that a company has for everybody; they excuse on hosts that are denied as a whole. */
  open: 'open_page',
  /** Pages with text; a host may have such a name, too, and excuses so (`careers.example.com`). */
  text: 'text_page',
} as const;

/** The pattern rules, compiled; judges one URL at a time. */
export class PatternLayer {
  readonly #rules: readonly PatternRule[];
  readonly #checks: readonly PatternRule[];
  readonly #table: ConditionTable;
  readonly #tokens: TokenIndex;
  readonly #words: Words;
  readonly #places: HostMap<HostPlaces>;
  readonly #lists: Readonly<Record<keyof typeof PARAMETER_LISTS, number>>;
  /** For each token list whether something is asked of parameters with such a name. */
  readonly #asked: Uint8Array;
  /** For each rule whether one of its conditions holds. */
  readonly #hits: Uint8Array;
  #hasHits = false;

  /** @throws PagegateError policy_invalid */
  constructor(document: PolicyDocument, tokens: TokenIndex, filter: HostFilter) {
    this.#rules = strictestFirst(compileRules(document.rules, tokens));
    this.#checks = this.#rules.filter((rule) => rule.check !== undefined);
    this.#tokens = tokens;
    this.#table = new ConditionTable(tokens);
    for (const [at, { entry }] of this.#rules.entries()) {
      for (const condition of entry.when ?? []) this.#table.add(at, condition);
    }
    this.#hits = new Uint8Array(this.#rules.length);
    this.#places = compilePlaces(document.places, filter);
    const ordinals = Object.entries(PARAMETER_LISTS).map(([name, list]) => [name, tokens.ordinal(list)]);
    this.#lists = Object.fromEntries(ordinals) as Record<keyof typeof PARAMETER_LISTS, number>;
    this.#words = new Words(tokens, this.#table.inPath, this.#lists.open);
    this.#asked = this.#table.inQuery.slice();
    this.#asked[this.#lists.path] = 1;
  }

  /** The first rule that matches, deny before flag; on a page verified as good, by what stands behind its path alone. */
  ask(subject: Subject, all: Verdict[] | undefined): Verdict | undefined {
    const { url } = subject;
    if (subject.isOnReadablePage) {
      if (url.query === '' && url.fragment === '') return undefined;
      this.#readBeyondPath(subject);
    } else this.#read(subject);
    this.#hitSegments(subject);
    const rules = this.#hasHits ? this.#rules : this.#checks;
    const isHit = (rule: PatternRule, at: number): boolean =>
      (this.#hasHits && this.#hits[at] === 1) || rule.check?.(subject) === true;
    const verdict = firstMatch(rules, isHit, all);
    if (this.#hasHits) this.#hits.fill(0);
    this.#hasHits = false;
    this.#words.clear();
    return verdict;
  }

  /**
   * Whether host and path announce reading matter, as the context of what would stand behind them. A page for everybody is such matter,
   * and so is what is known to stand there, but for what is known of a host above the `listed` one. The host does not speak for itself where
   * it is that one.
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
    const { hostLists } = words;
    // Of the path it takes a look at all segments: most hosts that have a word are asked nothing.
    const isAsked = hostLists.some((list) => this.#table.host[list] !== undefined);
    let context: number = CONTEXT.source;
    words.readPath(url.decodedPath, this.#places.find(host), (segments) => {
      this.#readFile(segments);
      if (isAsked) context = Math.min(context, words.context);
    });
    if (isAsked) this.#hitHost(url, context);
    this.#readRoute(url);
    this.#readParameters(subject, subject.parameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  #readBeyondPath(subject: Subject): void {
    const { url, host } = subject;
    // A route is a path, and stands in the context of host and path.
    if (url.fragment !== '' || subject.ownParameters.some((one) => this.#isRoute(one, url))) {
      this.#words.readHost(host);
      this.#words.readPath(url.decodedPath, this.#places.find(host));
      this.#words.forget();
      this.#readRoute(url);
    }
    this.#readParameters(subject, subject.ownParameters);
    this.#readParameters(subject, subject.routeParameters);
  }

  /** Reads the fragment as a path. What it says of reading matter holds for itself alone: no server sees it. */
  #readRoute(url: CanonicalUrl): void {
    const route = fragmentRoute(url) ?? this.#frontRoute(url);
    if (route !== undefined) this.#words.readPathApart(route);
  }

  /**
   * The fragment of a front page that opens something there without a slash in front: a word for a login alone (`/#login`), or a route of
   * several (`/#user/login`). Any other word is a heading.
   */
  #frontRoute(url: CanonicalUrl): string | undefined {
    if (url.fragment === '' || !this.#isFrontPage(url)) return undefined;
    const route = looseRoute(url);
    // Neither signs nor parameters behind it make another one of it; one that is a parameter itself opens nothing.
    const stop = nameStop(route, 1, route.length);
    const name = route.slice(1, lastLetterEnd(route, 1, stop));
    if (name.includes('=')) return undefined;
    const isLogin = ({ count, lists }: PathSegments): boolean => count === 1 && lists[0]!.includes(this.#lists.login);
    return name.includes('/') || this.#readings(route).some((one) => isLogin(this.#tokens.segments(one)))
      ? route
      : undefined;
  }

  #readings(path: string): readonly string[] {
    return readingsOf(path, this.#tokens.segments(path)) ?? [path];
  }

  #hit(rule: number): void {
    this.#hits[rule] = 1;
    this.#hasHits = true;
  }

  /** Marks the rules whose conditions on words of the path hold. */
  #hitSegments(subject: Subject): void {
    const { tables, touched, touchedCount } = this.#words.met;
    for (let at = 0; at < touchedCount; at++) {
      const list = touched[at]!;
      const conditions = this.#table.segment[list];
      if (conditions === undefined) continue;
      const first = tables[0][list]!;
      const second = tables[1][list]!;
      for (let place = 0; place < conditions.length; place++) {
        const condition = conditions[place]!;
        const met = condition.table === 0 ? first : second;
        if ((met & condition.mask) !== 0 && this.#holds(condition, list, subject)) this.#hit(condition.rule);
      }
    }
  }

  /** Whether what a condition asks beside its own word is there. */
  #holds({ also, alsoMask, hostLabel, parameter }: SegmentCondition, list: number, subject: Subject): boolean {
    const { met, hostLists } = this.#words;
    if (parameter >= 0 && !hasValueOf(subject.listedParameters, parameter)) return false;
    if (also >= 0 && ((met.tables[0][also]! & alsoMask) === 0 || !met.areApart(list, also))) return false;
    return hostLabel < 0 || hostLists.includes(hostLabel);
  }

  /** Marks the rules whose conditions on the host's first label hold, in the context of what would stand behind the path. */
  #hitHost(url: CanonicalUrl, context: number): void {
    for (const list of this.#words.hostLists) {
      for (const { rule, contexts, isRoot } of this.#table.host[list] ?? [])
        if ((contexts & (1 << context)) !== 0 && (!isRoot || this.#isFrontPage(url))) this.#hit(rule);
    }
  }

  /** Reads the last segment as a file: its whole name and its extension; and what a `;` in it may be a part of, too. */
  #readFile(segments: PathSegments): void {
    const { path, whole, allCount, starts, ends, dots } = segments;
    if (allCount === 0) return;
    const last = allCount - 1;
    const dot = dots[last]!;
    if (dot >= 0)
      this.#readNamed(
        segments.listsOfLastFile(),
        dot > starts[last]! ? this.#tokens.find(path, dot + 1, ends[last]!) : undefined,
      );
    if (!segments.isCut || !whole.includes(';')) return;
    const file = lastNamed(whole);
    for (let stop = file.indexOf(';'); stop >= 0; ) {
      stop = file.indexOf(';', stop + 1);
      this.#readFileName(file, lastLetterEnd(file, 0, stop < 0 ? file.length : stop));
    }
  }

  #readFileName(file: string, stop: number): void {
    // No name is longer that is in a list.
    const first = Math.max(0, stop - TOKEN_MAX_LENGTH);
    let dot = stop - 1;
    while (dot >= first && file.charCodeAt(dot) !== DOT) dot--;
    if (dot < first) return;
    this.#readNamed(this.#tokens.find(file, 0, stop), dot > 0 ? this.#tokens.find(file, dot + 1, stop) : undefined);
  }

  /** A file by the token lists of its name and of its extension, which is all of the name where that begins with its only dot. */
  #readNamed(files: readonly number[], extensions: readonly number[] = files): void {
    const context = 1 << this.#words.fileContext;
    for (let at = 0; at < files.length; at++) this.#hitFile(this.#table.file[files[at]!], context);
    for (let at = 0; at < extensions.length; at++) this.#hitFile(this.#table.extension[extensions[at]!], context);
  }

  #hitFile(conditions: readonly FileCondition[] | undefined, context: number): void {
    if (conditions === undefined) return;
    for (const { rule, contexts } of conditions) if ((contexts & context) !== 0) this.#hit(rule);
  }

  /** Whether a URL is the root, or its index file, in one of the readings of its path. */
  #isFrontPage({ decodedPath }: CanonicalUrl): boolean {
    return this.#readings(decodedPath).some((reading) => {
      const segments = this.#tokens.segments(reading);
      return segments.count === 0 || afterLanguage(segments.path) >= segments.end;
    });
  }

  /** Whether parameters are words to search for, in all readings of the path. */
  #isSearchPage({ decodedPath }: CanonicalUrl): boolean {
    return this.#readings(decodedPath).every((reading) => {
      const { lists, count } = this.#tokens.segments(reading);
      return count > 0 && lists[count - 1]!.includes(this.#lists.search);
    });
  }

  /** Whether a name is the path of a page; without a slash in front it is one on a front page alone (`index.php?user/login`). */
  #isRoute(parameter: Parameter, url: CanonicalUrl): boolean {
    if (!parameter.hasPlaceSign) return false;
    if (parameter.beginsWithSlash) return true;
    const { name, hasValue } = parameter;
    return (!hasValue || name.includes('&')) && isPath(beforeAmpersand(name)) && this.#isFrontPage(url);
  }

  /** Reads the name of a parameter as a path. What stands in it behind an escaped `&` is a parameter to some. */
  #readRouteName(name: string): void {
    this.#words.readPathApart(name);
    const path = beforeAmpersand(name);
    if (path !== name) this.#words.readPathApart(path);
  }

  #readParameters({ url }: Subject, parameters: readonly Parameter[]): void {
    if (parameters.length === 0) return;
    const around = this.#isSearchPage(url) ? CONTEXT.title : CONTEXT.none;
    for (let at = 0; at < parameters.length; at++) {
      const parameter = parameters[at]!;
      if (this.#isRoute(parameter, url)) this.#readRouteName(parameter.name);
      const { lists } = parameter;
      if (!isAnyIn(lists, this.#asked)) continue;
      const { value } = parameter;
      const isTitle = lists.includes(this.#lists.title) && !value.includes(':');
      const context = isTitle ? CONTEXT.title : around;
      if (lists.includes(this.#lists.path) && isPath(value) && this.#isFrontPage(url)) this.#words.readPathApart(value);
      for (const list of lists) {
        const conditions = this.#table.parameter[list];
        if (conditions === undefined || (list === this.#lists.controller && !this.#isFrontPage(url))) continue;
        this.#readParameter(conditions, list, value, 1 << context, lists.includes(this.#lists.programId));
      }
    }
  }

  #readParameter(
    conditions: readonly ParameterCondition[],
    name: number,
    value: string,
    context: number,
    mayBeId: boolean,
  ): void {
    let lists: readonly number[] | undefined;
    for (const condition of conditions) {
      if (this.#hits[condition.rule] === 1 || value.length < condition.minValueLength) continue;
      if ((condition.contexts & context) === 0 || (condition.butDates && isDate(value))) continue;
      if (condition.value >= 0) {
        lists ??= this.#listsOfValue(value, name, mayBeId);
        if (!lists.includes(condition.value)) continue;
      }
      this.#hit(condition.rule);
    }
  }

  #listsOfValue(value: string, name: number, mayBeId: boolean): readonly number[] {
    const lists = listsOfValue(value, this.#tokens, mayBeId);
    return name === this.#lists.act ? [...lists, ...this.#words.listsOfAct(value)] : lists;
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

/** What stands in a name before an escaped `&`, or all of it. */
function beforeAmpersand(name: string): string {
  const stop = name.indexOf('&');
  return stop > 0 ? name.slice(0, stop) : name;
}
