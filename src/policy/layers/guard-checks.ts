/** The checks that a guard rule can name, each compiled into a function of the request. */

import { BoundedCache } from '../../bounded-cache.ts';
import { type CanonicalUrl, SPELLING } from '../../domain/canonical-url.ts';
import { plainText } from '../../domain/plain-text.ts';
import { hasKnownSuffix } from '../../domain/public-suffix.ts';
import { isIsatap } from '../../network/address.ts';
import { isInvalidIdn, isTunnelName, spelledAddresses } from '../checks/host-names.ts';
import { LookalikeNames } from '../checks/lookalikes.ts';
import { hasNestedInternal } from '../checks/nested-urls.ts';
import { SecretScanner } from '../checks/secrets.ts';
import type { PolicyDocument, RuleEntry } from '../documents.ts';
import { isInRange, type Range, readRange } from '../ip-ranges.ts';
import type { Subject } from '../subject.ts';
import { packText } from '../url/characters.ts';
import { type HostFilter, HostMap } from '../url/host-map.ts';
import { hasValueOf } from '../url/parameters.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { LENGTH_MAX } from './guard-traits.ts';

export type GuardCheck = (subject: Subject) => boolean;

export interface GuardContext {
  readonly tokens: TokenIndex;
  readonly categories: PolicyDocument['categories'];
  readonly lookalikes: PolicyDocument['lookalikes'];
  readonly hosts: PolicyDocument['hosts'];
  readonly filter: HostFilter;
  /** The address ranges that the licensee exempts. */
  readonly exceptions: readonly Range[];
  /** Whether a URL inside a URL leads to an internal destination. `isBare`: it has no scheme. */
  readonly isInternal: (url: CanonicalUrl, isBare: boolean) => boolean;
}

type Factory = (rule: RuleEntry, context: GuardContext) => GuardCheck;

/** A factory for each check, by its name in rules. */
export const GUARD_CHECKS: Readonly<Record<string, Factory>> = {
  scheme: (rule) => {
    const allowed = new Set(rule.allowed ?? []);
    return ({ url }) => !allowed.has(url.scheme);
  },
  userinfo: () => (request) => request.url.hasUserinfo,
  spelling: (rule) => {
    const bits = (rule.spelling ?? []).reduce((mask, name) => mask | (SPELLING[name as keyof typeof SPELLING] ?? 0), 0);
    return ({ url }) => (url.spelling & bits) !== 0;
  },
  length: (rule) => {
    const limit = rule.max_length ?? LENGTH_MAX;
    return ({ url }) => url.href.length > limit;
  },
  method: (rule) => {
    const allowed = new Set<string | number>(rule.allowed ?? []);
    return ({ method }) => !allowed.has(method);
  },
  method_is: (rule) => {
    const methods = new Set(rule.methods ?? []);
    return ({ method }) => methods.has(method);
  },
  parameter: (rule, context) => {
    const names = context.tokens.ordinal(rule.names ?? '');
    return ({ listedParameters }) => hasValueOf(listedParameters, names);
  },
  address: (rule, context) => {
    const ranges = (rule.ranges ?? []).map(readRange);
    const { isatap = false, excusable = false } = rule;
    return ({ address }) => {
      if (address === undefined) return false;
      if (excusable && context.exceptions.some((range) => isInRange(range, address))) return false;
      return ranges.some((range) => isInRange(range, address)) || (isatap && isIsatap(address.address));
    };
  },
  host_name: (rule, { filter }) => {
    const { single_label: singleLabel = false, unlisted = false } = rule;
    const suffixes = suffixMap(rule.suffixes, filter);
    const internal = suffixMap(rule.inside_suffixes, filter);
    const lastLabels = new Set((rule.suffixes ?? []).map(lastLabelOf));
    const internalLabels = new Set((rule.inside_suffixes ?? []).map(lastLabelOf));
    const kindOf = memoByLastLabel(filter, (label) => {
      const isListed = !internalLabels.has(label) && hasKnownSuffix(`a.${label}`);
      return (lastLabels.has(label) ? LABEL.suffix : 0) | (isListed ? LABEL.listed : 0);
    });
    // A top-level domain may be newer than the list. A classified host exists, so its suffix does, too.
    const isUnlisted = ({ host, evidence }: Subject): boolean =>
      (!hasKnownSuffix(host) || internal.find(host) === true) && !evidence.found && !evidence.parentFound;
    return (subject) => {
      const { host, url } = subject;
      if (url.hostKind !== 'domain') return false;
      const kind = kindOf(host);
      if (kind === undefined) return singleLabel || (unlisted && isUnlisted(subject));
      if ((kind & LABEL.suffix) !== 0 && suffixes.find(host) === true) return true;
      return unlisted && (kind & LABEL.listed) === 0 && isUnlisted(subject);
    };
  },
  spelled_address: (rule) => {
    const ranges = (rule.ranges ?? []).map(readRange);
    return ({ host, url, evidence }) => {
      // The shortest such name has four digits, three dots or hyphens, and one more label.
      if (url.hostKind !== 'domain' || host.length < 9) return false;
      return (
        spelledAddresses(host).some((address) => ranges.some((range) => isInRange(range, address))) && !evidence.found
      );
    };
  },
  port: (rule) => {
    const allowed = new Set<string | number>(rule.allowed ?? []);
    return ({ url }) => !allowed.has(url.port);
  },
  idn_invalid: () => (subject) => isInvalidIdn(subject.encodedLabels),
  idn_confusable: (rule, { lookalikes, hosts }) => {
    const names = new LookalikeNames(lookalikes, hosts, rule.groups ?? []);
    return ({ host, encodedLabels }) => names.isLookalike(host, encodedLabels);
  },
  dns_tunnel: (rule) => {
    const limits = {
      minRun: rule.min_run ?? 32,
      minRunDigits: rule.min_run_digits ?? 5,
      maxSubdomainLength: rule.max_subdomain_length ?? 120,
    };
    // A classified host was reviewed and has a fixed name: its labels cannot carry data.
    return ({ host, url, evidence }) => url.hostKind === 'domain' && isTunnelName(host, limits) && !evidence.found;
  },
  secret: (rule, context) => {
    const scanner = new SecretScanner(rule.tokens ?? [], rule.forms ?? []);
    const names = context.tokens.ordinal(rule.names ?? '');
    return (subject) => {
      const { plainPath, encodedTexts, listedParameters } = subject;
      const { decodedPath, query, isPlain } = subject.url;
      if (scanner.isInPath(decodedPath, subject.segments)) return true;
      if (plainPath !== decodedPath && scanner.isIn(plainPath)) return true;
      if (query !== '') {
        const text = subject.decodedQuery;
        const plain = isPlain ? text : plainText(text);
        if (scanner.isIn(text) || (plain !== text && scanner.isIn(plain))) return true;
      }
      if (encodedTexts.length > 0 && encodedTexts.some((text) => scanner.isIn(text))) return true;
      return listedParameters.length > 0 && hasValueOf(listedParameters, names);
    };
  },
  nested_internal: (rule, context) => {
    const places = {
      isInternal: context.isInternal,
      schemes: new Set(rule.schemes ?? []),
      maxUrls: rule.max_urls ?? 16,
      tokens: context.tokens,
      names: context.tokens.ordinal(rule.names ?? ''),
      addressNames: context.tokens.ordinal(rule.address_names ?? rule.names ?? ''),
      insideNames: rule.inside_names === undefined ? undefined : context.tokens.ordinal(rule.inside_names),
      relays: context.tokens.ordinal(rule.relays ?? ''),
    };
    return (subject) => hasNestedInternal(subject, places);
  },
  category: (rule, { categories }) => {
    const wanted = new Set(rule.categories ?? []);
    for (const { id, name, threat } of categories) {
      if (wanted.has(id) || (threat && rule.threats === true)) wanted.add(name);
    }
    if (wanted.size === 0) return () => false;
    return ({ evidence }) => {
      const categories = evidence.filteringCategories();
      return categories.length > 0 && categories.some((category) => wanted.has(category));
    };
  },
};

/** Returns a map that contains the names and all their subdomains. */
function suffixMap(names: readonly string[] | undefined, filter: HostFilter): HostMap<true> {
  const map = new HostMap<true>(filter);
  for (const name of names ?? []) map.add(name, 'suffix', true);
  return map;
}

function lastLabelOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

const LAST_LABELS_MAX = 4096;

/** Flags of a last label. `suffix`: one of the rule's suffixes ends with it. `listed`: it is on the public suffix list. */
const LABEL = { suffix: 1, listed: 2 } as const;

/** Caches a function of a host's last label. The returned function returns undefined for a host of a single label. */
function memoByLastLabel(hosts: HostFilter, compute: (label: string) => number): (host: string) => number | undefined {
  const cache = new BoundedCache<number | string, number>(LAST_LABELS_MAX);
  return (host) => {
    const { starts, count } = hosts.read(host);
    if (count < 2) return undefined;
    const start = starts[0]!;
    const number = packText(host, start, host.length);
    // A number as key avoids a copy of the label. Hosts are in lower case.
    const key = number < 0 ? host.slice(start) : number;
    return cache.get(key) ?? cache.keep(key, compute(host.slice(start)));
  };
}
