/** The policy's files: read, checked against their schemas, the licensee's own worked in, compiled. The one place with I/O. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type ErrorObject, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { PagegateError } from '../errors.ts';
import { parseDocument } from '../json/document.ts';
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';
import type {
  DefaultEntry,
  HostEntry,
  LicenseeDocument,
  PageTypeEntry,
  Profile,
  RuleEntry,
  ShippedPolicy,
  TokenList,
} from './documents.ts';
import { mergeLicensee } from './merge.ts';
import { compilePolicy, type Policy } from './policy.ts';

/** A policy file that is larger is refused. */
const FILE_MAX_BYTES = LIMITS.policyBytes.value;

const SHIPPED_DIR = new URL('../../data/policy/', import.meta.url);
const SCHEMA_DIR = new URL('../../data/schema/', import.meta.url);

export type PolicySchema = 'hosts' | 'rules' | 'tokens' | 'page-types' | 'defaults' | 'licensee' | 'cases';

export interface PolicyOptions {
  /** The licensee's own file. */
  readonly file?: string | undefined;
  /** Whether the file is read this once: then it may be something that the caller of this program handed over open. */
  readonly once?: boolean;
  /** A profile as shipped (`strict`, `default`, `open`); stands above the one that the licensee's file names. */
  readonly profile?: string | undefined;
}

/**
 * Loads and compiles the policy as shipped with the licensee's file worked in. Throws policy_missing or policy_invalid, which must
 * stop the start, or leave a running server with the policy that it has.
 */
export function loadPolicy({ file, once, profile }: PolicyOptions = {}): Policy {
  const licensee = file === undefined ? undefined : readDocument<LicenseeDocument>(file, 'licensee', once);
  return compilePolicy(mergeLicensee(readShipped(), licensee, profile));
}

function readShipped(): ShippedPolicy {
  const read = <T>(name: PolicySchema): T => readDocument<T>(new URL(`${name}.json`, SHIPPED_DIR), name);
  const pages = read<{ ignored_query_names: string; telling_lists: string[]; page_types: PageTypeEntry[] }>(
    'page-types',
  );
  const defaults = read<{ decisions: DefaultEntry[]; profiles: Profile[] }>('defaults');
  return {
    hosts: read<{ hosts: HostEntry[] }>('hosts').hosts,
    rules: read<{ rules: RuleEntry[] }>('rules').rules,
    tokens: read<{ lists: Record<string, TokenList> }>('tokens').lists,
    pageTypes: pages.page_types,
    ignoredQueryNames: pages.ignored_query_names,
    tellingLists: pages.telling_lists,
    defaults: defaults.decisions,
    profiles: defaults.profiles,
  };
}

/**
 * Reads a JSON file and checks it against one of the policy's schemas.
 *
 * @param stdin whether the path `-` is standard input.
 * @throws PagegateError policy_missing, policy_invalid
 */
export function readDocument<T>(file: string | URL, schema: PolicySchema, stdin = false): T {
  const name = file instanceof URL ? fileURLToPath(file) : file;
  const bytes = readSmallFile(name, { code: 'policy_missing', maxBytes: FILE_MAX_BYTES, stdin });
  const value = parseDocument(bytes, 'policy_invalid', name);
  assertSchema(value, schema, name);
  return value as T;
}

const validators = new Map<PolicySchema, ReturnType<Validator['compile']>>();

/** Checks a value against one of the policy's schemas. Throws policy_invalid with the first complaints. */
function assertSchema(value: unknown, schema: PolicySchema, name: string): void {
  let validate = validators.get(schema);
  if (validate === undefined) {
    const validator = new Validator({ allErrors: false, strict: true, allowUnionTypes: true, strictRequired: false });
    validate = validator.compile(JSON.parse(readFileSync(new URL(`policy-${schema}.schema.json`, SCHEMA_DIR), 'utf8')));
    validators.set(schema, validate);
  }
  if (validate(value)) return;
  const complaints = (validate.errors ?? []).slice(0, 5).map((error) => complaint(error, value));
  throw new PagegateError('policy_invalid', `${name}: ${complaints.join('; ')}`, { file: name });
}

function complaint(error: ErrorObject, value: unknown): string {
  const where = error.instancePath === '' ? 'the document' : error.instancePath;
  const parameters = Object.values(error.params as Record<string, unknown>).filter((p) => typeof p === 'string');
  const extra =
    error.keyword === 'additionalProperties' || error.keyword === 'enum' ? ` (${describe(error, parameters)})` : '';
  return `${where}${idAt(value, error.instancePath)} ${error.message ?? 'is not valid'}${extra}`;
}

function describe(error: ErrorObject, parameters: readonly unknown[]): string {
  const allowed = (error.params as { allowedValues?: readonly unknown[] }).allowedValues;
  return allowed === undefined ? parameters.join(', ') : allowed.join(', ');
}

/** The id of the entry that a JSON pointer leads into, for the reader of an error. */
function idAt(value: unknown, pointer: string): string {
  let at = value;
  let id: string | undefined;
  for (const step of pointer.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) break;
    at = (at as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')];
    const own = (at as { id?: unknown } | undefined)?.id;
    if (typeof own === 'string') id = own;
  }
  return id === undefined ? '' : ` (id "${id}")`;
}
