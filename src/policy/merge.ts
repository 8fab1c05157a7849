/** The policy as shipped and a licensee's own file, made into one document. Pure. */
import { PagegateError } from '../errors.ts';
import type {
  HostEntry,
  LicenseeDocument,
  PageTypeEntry,
  PolicyDocument,
  Profile,
  RuleEntry,
  ShippedPolicy,
} from './documents.ts';

function invalid(what: string, id: string): PagegateError {
  return new PagegateError('policy_invalid', what, { id });
}

/** Adds, overrides by id, disables. Throws policy_invalid where the licensee's file names something that does not exist. */
export function mergeLicensee(
  shipped: ShippedPolicy,
  licensee: LicenseeDocument | undefined,
  profileName: string | undefined,
): PolicyDocument {
  const own = licensee ?? { format: 'pagegate-policy/1' };
  const warnings: string[] = [];
  const profile = chooseProfile(shipped.profiles, own, profileName);
  const hosts = override([...shipped.hosts, ...(own.add?.hosts ?? [])], own.override?.hosts, 'host');
  const rules = override([...shipped.rules, ...(own.add?.rules ?? [])], own.override?.rules, 'rule');
  const disabled = new Set(own.disable ?? []);
  assertKnown(disabled, [...hosts, ...rules]);
  for (const rule of rules) {
    if (disabled.has(rule.id) && rule.kind === 'guard') {
      warnings.push(`The guard rule "${rule.id}" is disabled: nothing else catches what it is there for.`);
    }
  }
  for (const name of Object.keys(own.add?.tokens ?? {})) {
    if (Object.hasOwn(shipped.tokens, name))
      throw invalid(`The token list "${name}" ships; choose another name.`, name);
  }
  return {
    hosts: hosts.filter((entry) => !disabled.has(entry.id)),
    rules: rules.filter((entry) => !disabled.has(entry.id)),
    pageTypes: overridePageTypes(shipped.pageTypes, own),
    ignoredQueryNames: shipped.ignoredQueryNames,
    tellingLists: shipped.tellingLists,
    tokens: { ...shipped.tokens, ...(own.add?.tokens ?? {}) },
    defaults: shipped.defaults,
    profile,
    allow: own.allow ?? [],
    addressExceptions: own.address_exceptions ?? [],
    warnings,
  };
}

function chooseProfile(profiles: readonly Profile[], own: LicenseeDocument, name: string | undefined): Profile {
  const wanted = name ?? own.profile ?? 'default';
  const profile = profiles.find((candidate) => candidate.name === wanted);
  if (profile === undefined) {
    const known = profiles.map((candidate) => candidate.name).join(', ');
    throw invalid(`There is no profile "${wanted}"; there are ${known}.`, wanted);
  }
  // A profile that was asked for by name stands above the file's own settings.
  if (name !== undefined) return profile;
  return {
    ...profile,
    unclassified_read: own.unclassified_read ?? profile.unclassified_read,
    unclassified_subdomain: own.unclassified_subdomain ?? profile.unclassified_subdomain,
  };
}

function override<T extends HostEntry | RuleEntry>(
  entries: readonly T[],
  changes: Readonly<Record<string, Partial<T>>> | undefined,
  what: string,
): T[] {
  const left = new Set(Object.keys(changes ?? {}));
  const merged = entries.map((entry) => {
    const change = changes !== undefined && Object.hasOwn(changes, entry.id) ? changes[entry.id] : undefined;
    left.delete(entry.id);
    return change === undefined ? entry : withVerdict({ ...entry, ...change }, change);
  });
  for (const id of left) throw invalid(`"override" names the ${what} "${id}", which does not exist.`, id);
  return merged;
}

/** A new verdict for every method replaces those for reads and writes that the entry had. */
function withVerdict<T extends HostEntry | RuleEntry>(entry: T, change: Partial<T>): T {
  const host = change as Partial<HostEntry>;
  if (host.verdict === undefined || (!('reads' in entry) && !('writes' in entry))) return entry;
  const { reads: _reads, writes: _writes, ...copy } = entry as unknown as HostEntry;
  const kept = {
    ...copy,
    ...(host.reads === undefined ? {} : { reads: host.reads }),
    ...(host.writes === undefined ? {} : { writes: host.writes }),
  };
  return kept as unknown as T;
}

function assertKnown(disabled: ReadonlySet<string>, entries: readonly { readonly id: string }[]): void {
  const known = new Set(entries.map((entry) => entry.id));
  for (const id of disabled) {
    if (!known.has(id)) throw invalid(`"disable" names "${id}", which does not exist.`, id);
  }
}

function overridePageTypes(types: readonly PageTypeEntry[], own: LicenseeDocument): PageTypeEntry[] {
  const changes = own.override?.page_types ?? {};
  for (const name of Object.keys(changes)) {
    if (!types.some((type) => type.type === name))
      throw invalid(`"override" names the page type "${name}", which does not exist.`, name);
  }
  return types.map((type) => ({ ...type, ...(Object.hasOwn(changes, type.type) ? changes[type.type] : {}) }));
}
