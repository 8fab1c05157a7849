/**
 * Validates and normalizes the fields of a licensee's rule, depending on its check. A field that the check does not read, or a value that no
 * request can have, would silently leave the rule without effect.
 */
import { type Condition, invalidPolicy, type RuleEntry } from '../documents.ts';
import { readPolicyHost } from '../url/host-map.ts';

/** The fields of a rule that each check reads. */
const PARAMETERS: Readonly<Record<string, readonly (keyof RuleEntry)[]>> = {
  scheme: ['allowed'],
  userinfo: [],
  spelling: ['spelling'],
  length: ['max_length'],
  method: ['allowed'],
  method_is: ['methods'],
  parameter: ['names'],
  address: ['ranges', 'excusable', 'isatap'],
  host_name: ['single_label', 'suffixes', 'unlisted', 'inside_suffixes'],
  spelled_address: ['ranges'],
  port: ['allowed'],
  idn_invalid: [],
  idn_confusable: ['groups'],
  dns_tunnel: ['min_run', 'min_run_digits', 'max_subdomain_length'],
  secret: ['names', 'tokens', 'forms'],
  nested_internal: ['names', 'address_names', 'inside_names', 'max_urls', 'schemes', 'relays'],
  category: ['threats', 'categories'],
  graphql_mutation: [],
  open_redirect: ['names', 'relays'],
  bulk_query: ['max_query_length', 'max_run', 'max_sum'],
};

const COMMON: ReadonlySet<string> = new Set<keyof RuleEntry>(['id', 'kind', 'verdict', 'note', 'check']);

const CONTEXTS = ['not_in', 'even_in'] as const;

/** For each main field of a condition, the fields that may accompany it. The first of these main fields that a condition has is its main field. */
const CONDITIONS: Readonly<Partial<Record<keyof Condition, readonly (keyof Condition)[]>>> = {
  segment: ['at', 'also', 'host_label', 'query_flag', ...CONTEXTS],
  host_label: ['root', ...CONTEXTS],
  file: CONTEXTS,
  extension: CONTEXTS,
  query_name: ['query_value', 'min_value_length', ...CONTEXTS],
  query_flag: ['min_value_length', 'but_dates', ...CONTEXTS],
};

/**
 * Returns a rule with its values normalized like those of requests: methods in upper case, schemes and names in lower case.
 *
 * @throws PagegateError policy_invalid, for a field that the check does not read or a value that no request can have
 */
export function normalizedRule(rule: RuleEntry): RuleEntry {
  const { id, kind, check = '', when = [], methods, schemes, suffixes, inside_suffixes: internal } = rule;
  const fields = [...(PARAMETERS[check] ?? []), ...(kind === 'pattern' ? ['when'] : [])];
  for (const name of Object.keys(rule)) {
    if (COMMON.has(name) || fields.includes(name)) continue;
    throw invalidPolicy(id, `The rule "${id}" has "${name}", which nothing reads there; it takes ${listed(fields)}.`);
  }
  for (const condition of when) assertCondition(id, condition);
  return {
    ...rule,
    ...(rule.allowed && { allowed: rule.allowed.map((value) => normalizedAllowed(id, check, value)) }),
    ...(methods && { methods: methods.map((method) => method.toUpperCase()) }),
    ...(schemes && { schemes: schemes.map((scheme) => normalizedScheme(id, scheme)) }),
    ...(suffixes && { suffixes: suffixes.map((name) => normalizedSuffix(id, name)) }),
    ...(internal && { inside_suffixes: internal.map((name) => normalizedSuffix(id, name)) }),
  };
}

function assertCondition(id: string, condition: Condition): void {
  const names = Object.keys(condition);
  const main = Object.keys(CONDITIONS).find((name) => names.includes(name)) as keyof Condition | undefined;
  if (main === undefined) {
    const known = listed(Object.keys(CONDITIONS));
    throw invalidPolicy(id, `A condition of the rule "${id}" asks for no word; it must name one of ${known}.`);
  }
  const companions = CONDITIONS[main] ?? [];
  const other = names.find((name) => name !== main && !companions.includes(name as keyof Condition));
  if (other === undefined) return;
  const allowed = `beside "${main}" can stand ${listed(companions)}`;
  throw invalidPolicy(
    id,
    `A condition of the rule "${id}" has "${other}" beside "${main}", which are not asked together; ${allowed}.`,
  );
}

function normalizedAllowed(id: string, check: string, value: string | number): string | number {
  if (check === 'scheme' && typeof value === 'string') return normalizedScheme(id, value);
  if (check === 'method' && typeof value === 'string' && /^[a-z-]+$/i.test(value)) return value.toUpperCase();
  if (check === 'port' && typeof value === 'number') return value;
  const wanted = check === 'port' ? 'a port, a number like 8443' : `a ${check}, a text like "${EXAMPLES[check]}"`;
  throw invalidPolicy(id, `${JSON.stringify(value)} in "allowed" of the rule "${id}" is not ${wanted}.`);
}

const EXAMPLES: Readonly<Record<string, string>> = { scheme: 'https', method: 'GET' };

function normalizedScheme(id: string, text: string): string {
  if (/^[a-z][a-z0-9+.-]*$/i.test(text)) return text.toLowerCase();
  throw invalidPolicy(id, `"${text}" of the rule "${id}" is not a scheme; write it without a colon, like "https".`);
}

function normalizedSuffix(id: string, text: string): string {
  const read = readPolicyHost(text);
  if (read?.reach === 'suffix') return read.host;
  throw invalidPolicy(
    id,
    `"${text}" of the rule "${id}" is not a name; what is below it counts as well: write it like "corp".`,
  );
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'no parameter' : names.join(', ');
}
