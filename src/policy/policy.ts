/** A policy, compiled: maps, tables and functions, made once at the start from the policy as data. */
import { createHash } from 'node:crypto';
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import { PagegateError } from '../errors.ts';
import { parseRange, type Range } from './addresses.ts';
import type { AllowEntry, DefaultId, HostEntry, PolicyDocument, RuleEntry } from './documents.ts';
import {
  addressOf,
  GUARD_CHECKS,
  type GuardContext,
  type GuardRequest,
  type GuardRule,
  needsOf,
  PATTERN_CHECKS,
} from './guards.ts';
import { HostMap, readAllowedHost, readPolicyHost } from './hosts.ts';
import { type PageLayer, type PageTypePolicy, pageTypeOrder, withoutLastSlash } from './pages.ts';
import { compileCondition, PatternMatcher, type PatternRule } from './patterns.ts';
import { TokenIndex } from './tokens.ts';
import { comparableHost, type Layer, NO_EVIDENCE, type Verdict, type VerdictName } from './types.ts';

/** A host entry, compiled. */
export interface HostPolicy {
  readonly entry: HostEntry;
  readonly reads: Verdict | undefined;
  readonly writes: Verdict | undefined;
}

/** One of the licensee's own allow entries, compiled. */
export interface AllowPolicy {
  readonly entry: AllowEntry;
  readonly verdict: Verdict;
  readonly methods: ReadonlySet<string>;
  /** Without a slash at its end; empty for the whole host. */
  readonly path: string;
}

export interface Policy {
  /** Twelve hexadecimal digits of the hash of everything that the policy was compiled from. */
  readonly revision: string;
  readonly profile: string;
  readonly document: PolicyDocument;
  readonly hosts: HostMap<HostPolicy>;
  readonly guards: readonly GuardRule[];
  readonly allow: HostMap<AllowPolicy[]>;
  readonly pages: PageLayer;
  readonly patterns: PatternMatcher;
  readonly defaults: Readonly<Record<DefaultId, Verdict>>;
  readonly tokens: TokenIndex;
  readonly warnings: readonly string[];
}

const DEFAULT_IDS: readonly DefaultId[] = [
  'classified_read',
  'unclassified_subdomain',
  'unclassified_read',
  'unclassified_write',
];

function verdictOf(verdict: VerdictName, layer: Layer, id: string, note: string): Verdict {
  return Object.freeze({ verdict, layer, id, note });
}

function invalid(what: string, details: Readonly<Record<string, string>> = {}): PagegateError {
  return new PagegateError('policy_invalid', what, details);
}

/** Compiles a policy. Throws policy_invalid, with the entry at fault. */
export function compilePolicy(document: PolicyDocument): Policy {
  assertUniqueIds(document);
  const tokens = new TokenIndex(document.tokens);
  const list = (name: string): number => {
    const ordinal = tokens.ordinal(name);
    if (ordinal === undefined) throw invalid(`There is no token list "${name}".`, { got: name });
    return ordinal;
  };
  const hosts = compileHosts(document.hosts);
  const defaults = compileDefaults(document);
  return {
    revision: revisionOf(document),
    profile: document.profile.name,
    document,
    hosts,
    guards: compileGuards(document, tokens, list, hosts),
    allow: compileAllow(document.allow),
    pages: compilePages(document, tokens, list),
    patterns: new PatternMatcher(compilePatterns(document.rules, list), tokens, {
      segment: list('reading'),
      workingPlace: list('working_place'),
      titleOpener: list('title_opener'),
      topicPlace: list('topic_place'),
      titleName: list('title_name'),
      pathName: list('path_name'),
      controllerName: list('controller_name'),
      sourceTree: list('source_tree'),
      index: list('index'),
    }),
    defaults,
    tokens,
    warnings: [...document.warnings, ...profileWarnings(defaults)],
  };
}

/** A short hash of what a policy was compiled from: the same documents give the same revision everywhere. */
function revisionOf(document: PolicyDocument): string {
  const { warnings: _warnings, ...rest } = document;
  return createHash('sha256').update(JSON.stringify(rest)).digest('hex').slice(0, 12);
}

function assertUniqueIds(document: PolicyDocument): void {
  const seen = new Set<string>();
  for (const { id } of [...document.hosts, ...document.rules, ...document.allow, ...document.defaults]) {
    if (seen.has(id)) throw invalid(`The id "${id}" is given twice; every entry needs one of its own.`, { id });
    seen.add(id);
  }
}

function compileHosts(entries: readonly HostEntry[]): HostMap<HostPolicy> {
  const map = new HostMap<HostPolicy>();
  for (const entry of entries) {
    const read = readPolicyHost(entry.host);
    if (read === undefined) throw invalid(`The host "${entry.host}" of "${entry.id}" is not a host.`, { id: entry.id });
    const verdict = (name: 'deny' | 'flag' | undefined): Verdict | undefined =>
      name === undefined ? undefined : verdictOf(name, 'high_value_hosts', entry.id, entry.note);
    const compiled = {
      entry,
      reads: verdict(entry.reads ?? entry.verdict),
      writes: verdict(entry.writes ?? entry.verdict),
    };
    const before = map.add(read.host, read.reach, compiled);
    if (before !== undefined)
      throw invalid(`"${entry.id}" and "${before.entry.id}" are the same host.`, { id: entry.id });
  }
  return map;
}

function compileGuards(
  document: PolicyDocument,
  tokens: TokenIndex,
  list: (name: string) => number,
  hosts: HostMap<HostPolicy>,
): readonly GuardRule[] {
  const exceptions: Range[] = document.addressExceptions.map((exception) => parseRange(exception.cidr));
  const places: GuardRule[] = [];
  const isInternal = (url: CanonicalUrl): boolean => {
    const host = comparableHost(url.host);
    if (hosts.find(host)?.entry.group === 'metadata') return true;
    const request: GuardRequest = { url, host, method: 'GET', evidence: NO_EVIDENCE, address: addressOf(url) };
    return places.some((rule) => rule.check(request));
  };
  const context: GuardContext = { tokens, list, exceptions, isInternal };
  const rules: GuardRule[] = [];
  for (const rule of document.rules) {
    if (rule.kind !== 'guard') continue;
    const factory = GUARD_CHECKS[rule.check ?? ''];
    if (factory === undefined)
      throw invalid(`The guard rule "${rule.id}" names no check that exists.`, { id: rule.id });
    const compiled = {
      verdict: verdictOf(rule.verdict, 'rules', rule.id, rule.note),
      check: factory(rule, context),
      needs: needsOf(rule),
    };
    rules.push(compiled);
    if (isPlaceRule(rule)) places.push(compiled);
  }
  return rules;
}

/** Whether a rule is about where a URL leads: those are asked about URLs inside a URL too. Any public address is such a place no more. */
function isPlaceRule(rule: RuleEntry): boolean {
  if (rule.check === 'host_name') return true;
  return rule.check === 'address' && !(rule.ranges ?? []).includes('0.0.0.0/0');
}

function compilePatterns(rules: readonly RuleEntry[], list: (name: string) => number): PatternRule[] {
  return rules
    .filter((rule) => rule.kind === 'pattern')
    .map((rule) => {
      const factory = rule.check === undefined ? undefined : PATTERN_CHECKS[rule.check];
      if (rule.check !== undefined && factory === undefined) {
        throw invalid(`The pattern rule "${rule.id}" names no check that exists.`, { id: rule.id });
      }
      const when = (rule.when ?? []).map((condition) => compileCondition(condition, list));
      if (when.length === 0 && factory === undefined)
        throw invalid(`The rule "${rule.id}" can never match.`, { id: rule.id });
      return {
        verdict: verdictOf(rule.verdict, 'rules', rule.id, rule.note),
        when,
        check: factory?.(rule),
      };
    });
}

function compileAllow(entries: readonly AllowEntry[]): HostMap<AllowPolicy[]> {
  const map = new HostMap<AllowPolicy[]>();
  for (const entry of entries) {
    const read = readAllowedHost(entry.host);
    if (read === undefined) throw invalid(`The host "${entry.host}" of "${entry.id}" is not a host.`, { id: entry.id });
    if (!entry.path.startsWith('/'))
      throw invalid(`The path of "${entry.id}" must start with a slash.`, { id: entry.id });
    const path = withoutLastSlash(entry.path);
    const note = entry.note ?? 'Your own policy allows this place by name.';
    const compiled = {
      entry,
      path,
      methods: new Set(entry.methods.map((method) => method.toUpperCase())),
      verdict: verdictOf('allow', 'rules', entry.id, note),
    };
    const others = map.add(read.host, read.reach, []) ?? [];
    map.add(read.host, read.reach, [...others, compiled]);
  }
  return map;
}

function compilePages(document: PolicyDocument, tokens: TokenIndex, list: (name: string) => number): PageLayer {
  const types = new Map<string, PageTypePolicy>();
  for (const [position, entry] of document.pageTypes.entries()) {
    const verdict = verdictOf(entry.verdict, 'page_type_db', entry.type, entry.note);
    types.set(entry.type, { verdict, order: pageTypeOrder(entry.type, position) });
  }
  const telling = new Uint8Array(tokens.names.length);
  for (const name of document.tellingLists) telling[list(name)] = 1;
  return { types, tokens, telling, ignoredNames: list(document.ignoredQueryNames) };
}

function compileDefaults(document: PolicyDocument): Record<DefaultId, Verdict> {
  const compiled: Partial<Record<DefaultId, Verdict>> = {};
  for (const entry of document.defaults) {
    const own =
      entry.id === 'unclassified_read' || entry.id === 'unclassified_subdomain'
        ? document.profile[entry.id]
        : undefined;
    const verdict = own ?? entry.verdict;
    if (verdict === undefined) throw invalid(`The default "${entry.id}" has no verdict.`, { id: entry.id });
    compiled[entry.id] = verdictOf(verdict, 'default', entry.id, entry.note);
  }
  for (const id of DEFAULT_IDS) {
    if (compiled[id] === undefined) throw invalid(`The default "${id}" is missing.`, { id });
  }
  return compiled as Record<DefaultId, Verdict>;
}

function profileWarnings(defaults: Readonly<Record<DefaultId, Verdict>>): string[] {
  const open = (['unclassified_read', 'unclassified_subdomain'] as const).filter(
    (id) => defaults[id].verdict === 'allow',
  );
  return open.map(
    (id) => `${id} is "allow": reads of places that nobody has classified pass, and data can leave in their URLs.`,
  );
}
