/** The policy as people write it: the shapes of the files in `data/policy` and of a licensee's own file. */
import { PagegateError } from '../errors.ts';
import type { FilteringCategory } from '../record/taxonomy.ts';
import type { VerdictName } from '../record/vocabulary.ts';
import type { ContextName } from './words/word-contexts.ts';

export interface HostEntry {
  readonly id: string;
  readonly group?: string;
  /** `example.com` matches the host and everything below it, `=example.com` the host alone, `*.example.com` what is below it. */
  readonly host: string;
  /**
   * Only at or below one of these paths, in lower case; nearer entries for the same host may have others. `*` is any segment, and at the
   * end of a segment its rest.
   */
  readonly paths?: readonly string[];
  /** Reads do not count where host and path announce one of these, or what is more so (`/legal/…`). */
  readonly not_in?: readonly ContextName[];
  /** One verdict for every method … */
  readonly verdict?: 'deny' | 'flag';
  /** … or one for reads and one for writes. */
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

/** One way in which a pattern rule can match; every field that is given must hold. */
export interface Condition {
  /** Token list that a whole path segment is in. */
  readonly segment?: string;
  /**
   * `before_id`: right before a number, a key or an e-mail address that ends the path, or several of them; `after_id`: the last segment,
   * right behind a number or a key; `part`: the first or the last word of a program's name that ends the path; `only`: the one segment of the path.
   */
  readonly at?: 'any' | 'first' | 'last' | 'before_id' | 'after_id' | 'part' | 'only';
  /** Token list that another segment is in as well. */
  readonly also?: string;
  /** Contexts in which the condition does not count, beside titles and source files. */
  readonly not_in?: readonly ContextName[];
  /** Of titles (`/wiki/…`) and source files (`/blob/main/…`), which say nothing about a page's purpose, those in which it does. */
  readonly even_in?: readonly ContextName[];
  /** Token list that the host's first label is in, below the registrable domain. */
  readonly host_label?: string;
  /** Only on the root, or its index file. */
  readonly root?: boolean;
  /** Token list that the last segment is in, extension included. */
  readonly file?: string;
  /** Token list that the extension of the last segment is in. */
  readonly extension?: string;
  /** Token lists that name and value of one query parameter are in. */
  readonly query_name?: string;
  readonly query_value?: string;
  /** Token list that the name of a query parameter is in, whatever its value; beside a segment one with a value. */
  readonly query_flag?: string;
  readonly min_value_length?: number;
  /** Not where the value is a date: of a stay `checkout` is the last day. */
  readonly but_dates?: boolean;
}

export interface RuleEntry {
  readonly id: string;
  readonly kind: 'guard' | 'pattern';
  readonly verdict: 'deny' | 'flag';
  readonly note: string;
  readonly check?: string;
  readonly when?: readonly Condition[];
  /** Parameters of the check; which ones it takes, the schema says. */
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
  /** Whether names count whose last label is on no list of public suffixes, where the host is not classified. */
  readonly unlisted?: boolean;
  /** Suffixes that are on the list and used for names of inside networks: as if they were on none. */
  readonly inside_suffixes?: readonly string[];
  readonly schemes?: readonly string[];
  readonly tokens?: readonly SecretToken[];
  /** Credentials that are known by their form or a check digit. */
  readonly forms?: readonly SecretForm[];
  /** Groups of host entries whose names are worth imitating. */
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
  /** Phrases by language code. Case, accents, separators and file extensions do not count. */
  readonly phrases: Readonly<Record<string, readonly string[]>>;
  /** Phrases of two parts: each of `first` followed by each of `then`. */
  readonly compounds?: readonly { readonly first: readonly string[]; readonly then: readonly string[] }[];
  /** Whether a licensee added it: what ships still reads its words in every way that it did. */
  readonly added?: true;
}

/** Every phrase of a list: those that are written out, and the compounds. */
export function* phrasesOf({ phrases, compounds = [] }: TokenList): IterableIterator<string> {
  for (const some of Object.values(phrases)) yield* some;
  for (const { first, then } of compounds) for (const start of first) for (const end of then) yield `${start} ${end}`;
}

export type DefaultId = 'classified_read' | 'unclassified_subdomain' | 'unclassified_read' | 'unclassified_write';

export interface DefaultEntry {
  readonly id: DefaultId;
  /** Absent where the profile decides. */
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
 * What stands where on some hosts, by templates of paths: `*` is any segment, `@` a name that no rule asks for, `{}` at the end the
 * segment that is meant, `**` all that follow.
 */
export interface PlaceEntry {
  /** As in {@link HostEntry}. */
  readonly hosts: readonly string[];
  /** First segments that are pages of the host, in lower case: every other first segment is the name of an owner, `@` in a template. */
  readonly own?: readonly string[];
  readonly documentation?: readonly string[];
  readonly topic?: readonly string[];
  readonly title?: readonly string[];
  readonly source?: readonly string[];
}

/** A place that the licensee allows by name, the only way a write is ever allowed. */
export interface AllowEntry {
  readonly id: string;
  /** `api.example.com` is that host, `*.example.com` every host below. */
  readonly host: string;
  /** Path prefix, on a segment boundary; `/` is the whole host. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly note?: string;
}

/** A host that the licensee excuses from one guard rule. */
export interface ExcuseEntry {
  readonly rule: string;
  /** `api.example.com` is that host, `*.example.com` every host below. */
  readonly host: string;
  readonly port?: number;
  readonly note?: string;
}

/** What looks like what: Unicode's confusable characters, and those that identifiers may have. */
export interface LookalikeData {
  /** ASCII characters → the characters that look like them, one after the other. */
  readonly confusables: Readonly<Record<string, string>>;
  /** Code points that identifiers may have, as ranges `first[-last]` in hexadecimal, separated by blanks. */
  readonly allowed: string;
}

export interface AddressException {
  readonly cidr: string;
  readonly note?: string;
}

/** A licensee's own file: what it adds to, changes in and takes away from the policy as shipped. */
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

/** What ships, before any licensee's file. */
export interface ShippedPolicy {
  readonly hosts: readonly HostEntry[];
  readonly rules: readonly RuleEntry[];
  /** In vocabulary order. */
  readonly page_types: readonly PageTypeEntry[];
  /** The web-filtering taxonomy, as far as rules ask for it. */
  readonly categories: readonly Pick<FilteringCategory, 'id' | 'name' | 'threat'>[];
  /** Token list of the query parameters that say nothing about which page it is. */
  readonly ignored_query_names: string;
  /** Token lists whose words say what a page is for. */
  readonly identifying_lists: readonly string[];
  readonly tokens: Readonly<Record<string, TokenList>>;
  readonly places: readonly PlaceEntry[];
  readonly lookalikes: LookalikeData;
  readonly defaults: readonly DefaultEntry[];
  readonly profiles: readonly Profile[];
}

/** Everything that a policy is compiled from, the licensee's file already worked in. */
export interface PolicyDocument extends Omit<ShippedPolicy, 'profiles'> {
  readonly profile: Profile;
  readonly allow: readonly AllowEntry[];
  readonly excuses: readonly ExcuseEntry[];
  readonly address_exceptions: readonly AddressException[];
  /** Things that are legal and that a person should know. */
  readonly warnings: readonly string[];
}

/** What is thrown for an entry that cannot be compiled. */
export function invalidPolicy(id: string, what: string): PagegateError {
  return new PagegateError('policy_invalid', what, { id });
}
