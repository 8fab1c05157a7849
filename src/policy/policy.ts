/** Compiles a policy document into lookup tables and check functions, once at startup. Pure: the document is the only input. */
import { createHash } from 'node:crypto';
import { UNICODE_VERSION } from '../domain/host-key.ts';
import { runAtOnce, type Steps } from '../steps.ts';
import { invalidPolicy, type PolicyDocument } from './documents.ts';
import { type AllowPolicy, compileAllow } from './layers/allow-entries.ts';
import { compileDefaults, type Defaults, defaultWarnings } from './layers/defaults.ts';
import { compileGuards, GuardPlan, type GuardRule } from './layers/guard-rules.ts';
import { compileHosts, type HostPolicies } from './layers/high-value-hosts.ts';
import { PatternLayer } from './layers/pattern-rules.ts';
import { PageLayer } from './layers/verified-pages.ts';
import { HostFilter, type HostMap } from './url/host-map.ts';
import { TokenIndex } from './words/tokens.ts';

/**
 * The version of the code that computes verdicts. Raise it with every change that can give one URL another verdict under the same
 * document: a change in this module, in how `domain` parses a URL, or of the pinned version of tldts, which holds the list of public
 * suffixes. Two programs with the same policy revision must give the same verdicts.
 */
export const POLICY_CODE_VERSION = 19;

export interface Policy {
  /** Twelve hexadecimal digits of a hash of everything that verdicts depend on, except the evidence. */
  readonly revision: string;
  readonly profile: string;
  readonly document: PolicyDocument;
  readonly hosts: HostMap<HostPolicies>;
  readonly guards: readonly GuardRule[];
  readonly guardPlan: GuardPlan;
  readonly allow: HostMap<AllowPolicy[]>;
  readonly pages: PageLayer;
  readonly patterns: PatternLayer;
  readonly defaults: Defaults;
  readonly tokens: TokenIndex;
  readonly warnings: readonly string[];
}

/** @throws PagegateError policy_invalid, with the id of the invalid entry */
export function compilePolicy(document: PolicyDocument): Policy {
  return runAtOnce(policySteps(document));
}

/** The steps of {@link compilePolicy}. @throws PagegateError policy_invalid, with the id of the invalid entry */
export function* policySteps(document: PolicyDocument): Steps<Policy> {
  assertUniqueIds(document);
  yield;
  const tokens = yield* TokenIndex.compile(document.tokens);
  const filter = new HostFilter();
  const hosts = yield* compileHosts(document.hosts, filter);
  const guards = compileGuards(document, tokens, hosts, filter);
  yield;
  const allow = compileAllow(document.allow, filter);
  const pages = new PageLayer(document, tokens);
  yield;
  const patterns = new PatternLayer(document, tokens, filter);
  yield;
  const revision = revisionOf(document);
  const defaults = compileDefaults(document);
  return {
    revision,
    profile: document.profile.name,
    document,
    hosts,
    guards,
    guardPlan: new GuardPlan(guards, filter),
    allow,
    pages,
    patterns,
    defaults,
    tokens,
    warnings: [...document.warnings, ...defaultWarnings(defaults)],
  };
}

/** Hashes the document without its warnings, the code version and the Unicode version. The same three give the same revision on every host. */
function revisionOf({ warnings: _warnings, ...document }: PolicyDocument): string {
  const text = JSON.stringify([POLICY_CODE_VERSION, UNICODE_VERSION, document]);
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

function assertUniqueIds(document: PolicyDocument): void {
  const seen = new Set<string>();
  for (const { id } of [...document.hosts, ...document.rules, ...document.allow, ...document.defaults]) {
    if (seen.has(id)) throw invalidPolicy(id, `The id "${id}" is given twice; every entry needs one of its own.`);
    seen.add(id);
  }
}
