/** Merges the shipped policy and a licensee's policy file into one document. Pure. */
import type { PagegateError } from '../errors.ts';
import { didYouMean } from '../json/did-you-mean.ts';
import {
  type HostEntry,
  invalidPolicy,
  type LicenseeDocument,
  type PageTypeEntry,
  type PolicyDocument,
  type Profile,
  phrasesOf,
  type RuleEntry,
  type ShippedPolicy,
} from './documents.ts';
import { normalizedRule } from './layers/rule-fields.ts';
import { foldPath, pathInUrl } from './url/paths.ts';
import { nameEnd, staticDot } from './url/segments.ts';
import { licenseeWarnings } from './warnings.ts';
import { TOKEN_MAX_LENGTH, tokenOf } from './words/tokens.ts';

/**
 * Applies the additions, overrides and removals of the licensee's file.
 *
 * @throws PagegateError policy_invalid, for example if the licensee's file names an id that does not exist
 */
export function mergeLicensee(
  shipped: ShippedPolicy,
  licensee: LicenseeDocument | undefined,
  profileName: string | undefined,
): PolicyDocument {
  const changes = licensee ?? { format: 'pagegate-policy/1' };
  assertPlaces(changes);
  assertPhrases(changes);
  assertNotBoth(changes);
  const profile = chooseProfile(shipped.profiles, changes, profileName);
  const grouped = overrideGroups([...shipped.hosts, ...(changes.add?.hosts ?? [])], changes.override?.groups);
  const allHosts = override(grouped, changes.override?.hosts, 'host');
  const allRules = override([...shipped.rules, ...(changes.add?.rules ?? [])], changes.override?.rules, 'rule');
  // Shipped rules are already normalized: a test checks this.
  const rules = licensee === undefined ? allRules : allRules.map(normalizedRule);
  const disabled = new Set(changes.disable ?? []);
  assertKnown(disabled, allHosts, allRules);
  const tokens = { ...shipped.tokens };
  for (const [name, list] of Object.entries(changes.add?.tokens ?? {})) {
    if (Object.hasOwn(shipped.tokens, name))
      throw invalidPolicy(name, `The token list "${name}" ships; choose another name.`);
    tokens[name] = { ...list, added: true };
  }
  const { profiles: _profiles, ...kept } = shipped;
  const hosts = allHosts.filter(({ id, group }) => !disabled.has(id) && !disabled.has(`group:${group}`));
  const merged = {
    ...kept,
    hosts,
    rules: rules.filter((entry) => !disabled.has(entry.id)),
    page_types: overridePageTypes(shipped.page_types, changes),
    tokens,
    places: [...shipped.places, ...(changes.add?.places ?? [])],
    profile,
    allow: changes.allow ?? [],
    excuses: changes.excuse ?? [],
    address_exceptions: changes.address_exceptions ?? [],
  };
  return {
    ...merged,
    warnings: licensee === undefined ? [] : licenseeWarnings(shipped, licensee, merged),
  };
}

/** Rejects paths that no URL can have: such an entry would silently deny nothing. @throws PagegateError policy_invalid */
function assertPlaces({ add, override: { hosts: changed = {} } = {} }: LicenseeDocument): void {
  const places = [...(add?.hosts ?? []), ...Object.entries(changed).map(([id, { paths }]) => ({ id, paths }))];
  for (const { id, paths = [] } of places) {
    for (const path of paths) {
      if (/\*[^/]/.test(path))
        throw invalidPolicy(id, `In the path "${path}" of "${id}" a "*" must be a whole segment, or end one.`);
      const inUrl = pathInUrl(path);
      if (inUrl !== undefined && foldPath(inUrl) !== foldPath(path))
        throw invalidPolicy(id, `The path "${path}" of "${id}" stands in no URL: there it is "${inUrl}".`);
    }
  }
}

/** Rejects phrases that no path segment can equal: they would never match. @throws PagegateError policy_invalid */
function assertPhrases({ add, override: { rules: changed = {} } = {} }: LicenseeDocument): void {
  const rules: readonly Partial<RuleEntry>[] = [...(add?.rules ?? []), ...Object.values(changed)];
  for (const [name, list] of Object.entries(add?.tokens ?? {})) {
    const isNameList = isUsedForNamesOnly(name, rules);
    for (const phrase of phrasesOf(list)) {
      const sign = /[/?#%*\\]/.exec(phrase)?.[0];
      if (sign !== undefined)
        throw invalidPolicy(
          name,
          `The phrase "${phrase}" of "${name}" has "${sign}": a phrase is one whole segment, decoded.`,
        );
      const { length } = tokenOf(phrase);
      if (length === 0 || length > TOKEN_MAX_LENGTH)
        throw invalidPolicy(
          name,
          `The phrase "${phrase}" of "${name}" must have 1 to ${TOKEN_MAX_LENGTH} letters and digits.`,
        );
      const compared = isNameList ? withoutExtensions(phrase) : phrase;
      if (compared.length < phrase.length)
        throw invalidPolicy(
          name,
          `The phrase "${phrase}" of "${name}" is never met, because segments are compared without their extension: ` +
            `write "${compared}", or ask for "${name}" as a "file".`,
        );
    }
  }
}

/**
 * Whether rules use a list only for names of segments, which are compared without their extension. A file is compared with its
 * extension, and a parameter has none.
 */
function isUsedForNamesOnly(list: string, rules: readonly Partial<RuleEntry>[]): boolean {
  const fields = rules.flatMap(({ when = [] }) => when.flatMap((condition) => Object.entries(condition)));
  const names = fields.filter(([, value]) => value === list).map(([name]) => name);
  return names.length > 0 && names.every((name) => name === 'segment' || name === 'also');
}

/** Removes what the name of a segment never ends with. A phrase with a leading dot or underscore keeps its extension (`.env.example`). */
function withoutExtensions(phrase: string): string {
  const end = nameEnd(phrase, 0, phrase.length);
  if (phrase[end] === '.' && end > 0 && tokenOf(phrase.slice(0, end)) !== tokenOf(phrase)) return phrase.slice(0, end);
  const dot = /^[._]/.test(phrase) ? -1 : staticDot(phrase, 1);
  return dot > 0 ? phrase.slice(0, dot) : phrase;
}

/** Rejects ids that are both disabled and overridden. @throws PagegateError policy_invalid */
function assertNotBoth({
  disable = [],
  override: { hosts = {}, rules = {}, groups = {} } = {},
}: LicenseeDocument): void {
  const groupIds = Object.keys(groups).map((name) => `group:${name}`);
  const changed = new Set([...Object.keys(hosts), ...Object.keys(rules), ...groupIds]);
  const id = disable.find((one) => changed.has(one));
  if (id !== undefined)
    throw invalidPolicy(id, `"disable" and "override" both name "${id}": remove it from one of them.`);
}

function chooseProfile(profiles: readonly Profile[], changes: LicenseeDocument, name: string | undefined): Profile {
  const wanted = name ?? changes.profile ?? 'default';
  const profile = profiles.find((candidate) => candidate.name === wanted);
  if (profile === undefined) {
    const known = profiles.map((candidate) => candidate.name).join(', ');
    throw invalidPolicy(wanted, `There is no profile "${wanted}"; there are ${known}.`);
  }
  // A profile that is named explicitly overrides the file's settings.
  if (name !== undefined) return profile;
  return {
    ...profile,
    unclassified_read: changes.unclassified_read ?? profile.unclassified_read,
    unclassified_subdomain: changes.unclassified_subdomain ?? profile.unclassified_subdomain,
  };
}

function override<T extends HostEntry | RuleEntry>(
  entries: readonly T[],
  changes: Readonly<Record<string, Partial<T>>> = {},
  what: string,
): T[] {
  const left = new Set(Object.keys(changes));
  const merged = entries.map((entry) => {
    const isChanged = left.delete(entry.id);
    return isChanged ? withChange(entry, changes[entry.id]!) : entry;
  });
  const ids = entries.map(({ id }) => id);
  for (const id of left) throw unknown(`"override" names the ${what}`, id, ids);
  return merged;
}

/** Applies an override to an entry. A new `verdict` for every method replaces the entry's `reads` and `writes`. */
function withChange<T extends HostEntry | RuleEntry>(entry: T, change: Partial<T>): T {
  const merged: Record<string, unknown> = { ...entry, ...change };
  const isForAllMethods = 'verdict' in change;
  for (const name of ['reads', 'writes']) if (isForAllMethods && !(name in change)) delete merged[name];
  return merged as unknown as T;
}

/** Applies verdict overrides to all hosts of a group. */
function overrideGroups(
  hosts: readonly HostEntry[],
  changes: NonNullable<LicenseeDocument['override']>['groups'] = {},
): HostEntry[] {
  const groups = new Set(hosts.flatMap(({ group = [] }) => group));
  for (const name of Object.keys(changes)) {
    if (!groups.has(name)) throw unknown('"override" names the group', name, groups);
  }
  return hosts.map((entry) => {
    const change = Object.hasOwn(changes, entry.group ?? '') ? changes[entry.group ?? ''] : undefined;
    return change === undefined ? entry : withChange(entry, change);
  });
}

function assertKnown(disabled: ReadonlySet<string>, hosts: readonly HostEntry[], rules: readonly RuleEntry[]): void {
  const known = new Set([...hosts, ...rules].map((entry) => entry.id));
  for (const { group } of hosts) known.add(`group:${group}`);
  for (const id of disabled) {
    if (!known.has(id)) throw unknown('"disable" names', id, known);
  }
}

function overridePageTypes(types: readonly PageTypeEntry[], licensee: LicenseeDocument): PageTypeEntry[] {
  const changes = licensee.override?.page_types ?? {};
  for (const name of Object.keys(changes)) {
    const known = types.map(({ type }) => type);
    if (!known.includes(name)) throw unknown('"override" names the page type', name, known);
  }
  return types.map((type) => ({ ...type, ...(Object.hasOwn(changes, type.type) ? changes[type.type] : {}) }));
}

function unknown(what: string, name: string, known: Iterable<string>): PagegateError {
  return invalidPolicy(name, `${what} "${name}", which does not exist${didYouMean(name, known)}.`);
}
