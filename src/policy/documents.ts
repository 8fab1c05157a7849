/** The policy as people write it: the types of the files in `data/policy` and of a licensee's policy file. */
import { PagegateError } from '../errors.ts';
import type { FilteringCategory } from '../record/taxonomy.ts';
import type { VerdictName } from '../record/vocabulary.ts';
import type { ContextName } from './words/word-contexts.ts';

export interface HostEntry {
  readonly id: string;
  readonly group?: string;
  /** `example.com` matches the host and its subdomains, `=example.com` only the host, `*.example.com` only its subdomains. */
  readonly host: string;
  /**
   * Path prefixes in lower case: the entry applies only at or below one of them. A more specific entry for the same host takes precedence.
   * `*` matches any segment; at the end of a segment (`/a*`) it matches the rest of that segment.
   */
  readonly paths?: readonly string[];
  /** The entry does not apply to reads if host and path announce one of these contexts, or one later in `CONTEXT` (`/legal/…`). */
  readonly not_in?: readonly ContextName[];
  /** The verdict for every method. */
  readonly verdict?: 'deny' | 'flag';
  /** Instead of `verdict`: one verdict for reads and one for writes. */
  readonly reads?: 'deny' | 'flag';
  readonly writes?: 'deny' | 'flag';
  readonly note: string;
}

export interface SecretToken {
  readonly name: string;
  readonly prefixes: readonly string[];
  readonly alphabet: string;
  readonly min_length: number;
  readonly min_dots?: number;
}

export type SecretForm = 'telegram' | 'discord' | 'card' | 'iban';

/** One way for a pattern rule to match. Every field that is set must hold. */
export interface Condition {
  /** Token list that must contain a whole path segment. */
  readonly segment?: string;
  /**
   * Position of the segment. `before_id`: right before one or more numbers, keys or e-mail addresses that end the path. `after_id`: the
   * last segment, right after a number or a key. `part`: the first or last word of a program's name that ends the path (`deleteItem.do`).
   * `only`: the only segment of the path.
   */
  readonly at?: 'any' | 'first' | 'last' | 'before_id' | 'after_id' | 'part' | 'only';
  /** Token list that must contain another segment. */
  readonly also?: string;
  /** Contexts in which the condition does not apply, in addition to titles and source files. */
  readonly not_in?: readonly ContextName[];
  /** Applies the condition even in titles (`/wiki/…`) or source files (`/blob/main/…`), whose words say nothing about a page's purpose. */
  readonly even_in?: readonly ContextName[];
  /** Token list that must contain the host's first label, below the registrable domain. */
  readonly host_label?: string;
  /** The path must be the root or its index file. */
  readonly root?: boolean;
  /** Token list that must contain the last segment, including its extension. */
  readonly file?: string;
  /** Token list that must contain the extension of the last segment. */
  readonly extension?: string;
  /** Token lists that must contain the name and the value of one query parameter. */
  readonly query_name?: string;
  readonly query_value?: string;
  /** Token list that must contain the name of a query parameter. The value does not matter; together with `segment` it must not be empty. */
  readonly query_flag?: string;
  readonly min_value_length?: number;
  /** The condition does not match if the value is a date: in a hotel booking, `checkout` is the last day. */
  readonly but_dates?: boolean;
}

export interface RuleEntry {
  readonly id: string;
  readonly kind: 'guard' | 'pattern';
  readonly verdict: 'deny' | 'flag';
  readonly note: string;
  readonly check?: string;
  readonly when?: readonly Condition[];
  /** Parameters of the check. The schema defines which check takes which. */
  readonly allowed?: readonly (string | number)[];
  readonly methods?: readonly string[];
  readonly spelling?: readonly string[];
  readonly names?: string;
  readonly address_names?: string;
  readonly inside_names?: string;
  readonly ranges?: readonly string[];
  readonly isatap?: boolean;
  readonly excusable?: boolean;
  readonly single_label?: boolean;
  readonly suffixes?: readonly string[];
  /** Whether the check also matches unclassified hosts whose name has no known public suffix. */
  readonly unlisted?: boolean;
  /** Public suffixes that internal networks use as well. They are treated as if they were not on the public suffix list. */
  readonly inside_suffixes?: readonly string[];
  readonly schemes?: readonly string[];
  readonly tokens?: readonly SecretToken[];
  /** Credentials that are recognized by their form or a check digit. */
  readonly forms?: readonly SecretForm[];
  /** Groups of host entries whose names attackers imitate. */
  readonly groups?: readonly string[];
  readonly relays?: string;
  readonly threats?: boolean;
  readonly categories?: readonly string[];
  readonly max_length?: number;
  readonly max_urls?: number;
  readonly max_query_length?: number;
  readonly max_run?: number;
  readonly max_sum?: number;
  readonly min_run?: number;
  readonly min_run_digits?: number;
  readonly max_subdomain_length?: number;
}

export interface PageTypeEntry {
  readonly type: string;
  readonly verdict: VerdictName;
  readonly note: string;
}

export interface TokenList {
  readonly meaning: string;
  /** Phrases by language code. Case, accents, separators and file extensions are ignored. */
  readonly phrases: Readonly<Record<string, readonly string[]>>;
  /** Phrases of two parts: each of `first` followed by each of `then`. */
  readonly compounds?: readonly { readonly first: readonly string[]; readonly then: readonly string[] }[];
  /** Set for a list that a licensee added. A word only in such lists is still interpreted in every way that the shipped policy does. */
  readonly added?: true;
}

/** Yields every phrase of a list, including its compounds. */
export function* phrasesOf({ phrases, compounds = [] }: TokenList): IterableIterator<string> {
  for (const some of Object.values(phrases)) yield* some;
  for (const { first, then } of compounds) for (const start of first) for (const end of then) yield `${start} ${end}`;
}

export type DefaultId = 'classified_read' | 'unclassified_subdomain' | 'unclassified_read' | 'unclassified_write';

export interface DefaultEntry {
  readonly id: DefaultId;
  /** Absent if the profile decides. */
  readonly verdict?: VerdictName;
  readonly note: string;
}

export interface Profile {
  readonly name: string;
  readonly unclassified_read: VerdictName;
  readonly unclassified_subdomain: VerdictName;
  readonly note: string;
}

/**
 * What the paths of some hosts contain, as path templates. `*` is any segment, `@` a name that no rule looks at, `{}` at the end the
 * described segment, `**` all following segments.
 */
export interface PlaceEntry {
  /** Hosts as in {@link HostEntry}. */
  readonly hosts: readonly string[];
  /** First segments, in lower case, that are pages of the host itself. Every other first segment is the name of an owner (`@` in a template). */
  readonly own?: readonly string[];
  readonly documentation?: readonly string[];
  readonly topic?: readonly string[];
  readonly title?: readonly string[];
  readonly source?: readonly string[];
}

/** A place that the licensee explicitly allows. This is the only way to allow a write. */
export interface AllowEntry {
  readonly id: string;
  /** `api.example.com` matches only that host, `*.example.com` all its subdomains. */
  readonly host: string;
  /** Path prefix on a segment boundary; `/` is the whole host. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly note?: string;
}

/** A host that the licensee exempts from one guard rule. */
export interface ExcuseEntry {
  readonly rule: string;
  /** `api.example.com` matches only that host, `*.example.com` all its subdomains. */
  readonly host: string;
  readonly port?: number;
  readonly note?: string;
}

/** Unicode's confusable characters, and the characters that identifiers may contain. */
export interface LookalikeData {
  /** For each ASCII character, a string of the characters that look like it. */
  readonly confusables: Readonly<Record<string, string>>;
  /** Code points that identifiers may contain, as hexadecimal ranges `first[-last]` separated by spaces. */
  readonly allowed: string;
}

export interface AddressException {
  readonly cidr: string;
  readonly note?: string;
}

/** A licensee's policy file: what it adds to, changes in and removes from the shipped policy. */
export interface LicenseeDocument {
  readonly format: 'pagegate-policy/1';
  readonly profile?: string;
  readonly unclassified_read?: VerdictName;
  readonly unclassified_subdomain?: VerdictName;
  readonly add?: {
    readonly hosts?: readonly HostEntry[];
    readonly rules?: readonly RuleEntry[];
    readonly tokens?: Readonly<Record<string, TokenList>>;
    readonly places?: readonly PlaceEntry[];
  };
  readonly override?: {
    readonly hosts?: Readonly<Record<string, Partial<HostEntry>>>;
    /** Verdicts for all hosts of a group. */
    readonly groups?: Readonly<Record<string, Pick<HostEntry, 'verdict' | 'reads' | 'writes'>>>;
    readonly rules?: Readonly<Record<string, Partial<RuleEntry>>>;
    readonly page_types?: Readonly<Record<string, Partial<PageTypeEntry>>>;
  };
  /** Ids of hosts and rules, and `group:NAME` for all hosts of a group. */
  readonly disable?: readonly string[];
  readonly allow?: readonly AllowEntry[];
  readonly excuse?: readonly ExcuseEntry[];
  readonly address_exceptions?: readonly AddressException[];
}

/** The shipped policy, before a licensee's file is merged. */
export interface ShippedPolicy {
  readonly hosts: readonly HostEntry[];
  readonly rules: readonly RuleEntry[];
  /** In vocabulary order. */
  readonly page_types: readonly PageTypeEntry[];
  /** The fields of the web-filtering taxonomy that rules use. */
  readonly categories: readonly Pick<FilteringCategory, 'id' | 'name' | 'threat'>[];
  /** Token list of the query parameters that do not identify a page. */
  readonly ignored_query_names: string;
  /** Token lists whose words identify a page's purpose. */
  readonly identifying_lists: readonly string[];
  readonly tokens: Readonly<Record<string, TokenList>>;
  readonly places: readonly PlaceEntry[];
  readonly lookalikes: LookalikeData;
  readonly defaults: readonly DefaultEntry[];
  readonly profiles: readonly Profile[];
}

/** Everything that a policy is compiled from, with the licensee's file merged. */
export interface PolicyDocument extends Omit<ShippedPolicy, 'profiles'> {
  readonly profile: Profile;
  readonly allow: readonly AllowEntry[];
  readonly excuses: readonly ExcuseEntry[];
  readonly address_exceptions: readonly AddressException[];
  /** Valid settings that a person should know about. */
  readonly warnings: readonly string[];
}

/** Creates the error for an entry that cannot be compiled. */
export function invalidPolicy(id: string, what: string): PagegateError {
  return new PagegateError('policy_invalid', what, { id });
}
