/** Reads the policy files, validates them against their schemas, merges the licensee's file and compiles the result. All I/O of this module is here. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Ajv2020, AnySchemaObject, ErrorObject } from 'ajv/dist/2020.js';
import { PagegateError } from '../errors.ts';
import { describePlace, describeSchemaError, pointerOf } from '../json/schema-problem.ts';
import { SELDOM_USED_SCHEMA_OPTIONS } from '../json/shipped-schemas.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';
import { filteringTaxonomy } from '../record/taxonomy.ts';
import { pageTypes } from '../record/vocabulary.ts';
import { runAtOnce, type Steps } from '../steps.ts';
import type {
  DefaultEntry,
  HostEntry,
  LicenseeDocument,
  LookalikeData,
  PlaceEntry,
  Profile,
  RuleEntry,
  ShippedPolicy,
  TokenList,
} from './documents.ts';
import { mergeLicensee } from './merge.ts';
import { type Policy, policySteps } from './policy.ts';

/** Larger policy files are refused. */
const FILE_MAX_BYTES = LIMITS.policyBytes.value;

const SHIPPED_DIR = new URL('../../data/policy/', import.meta.url);
const LOOKALIKES = new URL('../../data/unicode/lookalikes.json', import.meta.url);
const SCHEMA_DIR = new URL('../../data/schema/', import.meta.url);

/** A document that ships with the program. */
type ShippedDocument = 'hosts' | 'rules' | 'words' | 'path-contents' | 'defaults';
export type PolicySchema = ShippedDocument | 'licensee' | 'cases';

export interface PolicyOptions {
  /** The licensee's policy file. */
  readonly file?: string | undefined;
  /** Whether the file is read only once, so that `-` may mean standard input. */
  readonly once?: boolean;
  /** A shipped profile (`strict`, `default`, `open`). Overrides the profile in the licensee's file. */
  readonly profile?: string | undefined;
}

/**
 * Loads the shipped policy, merges the licensee's file and compiles the result. On an error, the program must not start, and a running
 * server must keep its policy.
 *
 * @throws PagegateError policy_missing, policy_invalid
 */
export function loadPolicy(options: PolicyOptions = {}): Policy {
  return runAtOnce(loadPolicySteps(options));
}

/** The steps of {@link loadPolicy}. @throws PagegateError policy_missing, policy_invalid */
export function* loadPolicySteps({ file, once, profile }: PolicyOptions): Steps<Policy> {
  const licensee = file === undefined ? undefined : readDocument<LicenseeDocument>(file, 'licensee', once);
  yield;
  const shipped = readShipped();
  yield;
  try {
    const document = mergeLicensee(shipped, licensee, profile);
    yield;
    return yield* policySteps(document);
  } catch (error) {
    // A profile from an option is not in the file.
    const isAboutFile = error instanceof PagegateError && file !== undefined && error.details['id'] !== profile;
    if (!isAboutFile) throw error;
    throw new PagegateError(error.code, `${file}: ${error.what}`, error.details, { cause: error });
  }
}

type HostText = string | Pick<HostEntry, 'host' | 'paths' | 'not_in'>;

/** A group of shipped hosts, listed by the source that names them. */
interface HostGroup extends Pick<HostEntry, 'verdict' | 'reads' | 'writes' | 'not_in' | 'note'> {
  readonly id: string;
  readonly sources: readonly { readonly source: string; readonly hosts: readonly HostText[] }[];
}

interface RulesFile {
  readonly ignored_query_names: string;
  readonly identifying_lists: readonly string[];
  readonly rules: readonly RuleEntry[];
}

/** Reads the shipped documents. A test checks them against their schemas; doing it here would take half of the startup time. */
function readShipped(): ShippedPolicy {
  const read = <T>(name: ShippedDocument): T => JSON.parse(readFileSync(new URL(`${name}.json`, SHIPPED_DIR), 'utf8'));
  const { rules, ignored_query_names, identifying_lists } = read<RulesFile>('rules');
  const { decisions, profiles } = read<{ decisions: DefaultEntry[]; profiles: Profile[] }>('defaults');
  return {
    hosts: read<{ groups: HostGroup[] }>('hosts').groups.flatMap(hostsOf),
    rules,
    tokens: read<{ lists: Record<string, TokenList> }>('words').lists,
    places: read<{ places: PlaceEntry[] }>('path-contents').places,
    lookalikes: readLookalikes(),
    page_types: pageTypes().map(({ name, verdict, note }) => ({ type: name, verdict, note })),
    categories: filteringTaxonomy.map(({ id, name, threat }) => ({ id, name, threat })),
    ignored_query_names,
    identifying_lists,
    defaults: decisions,
    profiles,
  };
}

/** Returns the host entries of a group. The id of an entry is its host plus the first of its paths up to the first `*` segment. */
function hostsOf({ id: group, sources, ...common }: HostGroup): HostEntry[] {
  return sources
    .flatMap(({ hosts }) => hosts)
    .map((text) => {
      const fields = typeof text === 'string' ? { host: text } : text;
      return {
        id: fields.host.replace(/^(?:=|\*\.)/, '') + (fields.paths?.[0]?.replace(/\/[^/]*\*.*$/, '') ?? ''),
        group,
        ...common,
        ...fields,
      };
    });
}

function readLookalikes(): LookalikeData {
  const { confusables, allowed } = JSON.parse(readFileSync(LOOKALIKES, 'utf8')) as LookalikeData;
  return { confusables, allowed };
}

/**
 * Reads a JSON file and validates it against one of the policy's schemas.
 *
 * @param stdin whether the path `-` means standard input.
 * @throws PagegateError policy_missing, policy_invalid
 */
export function readDocument<T>(file: string | URL, schema: PolicySchema, stdin = false): T {
  const name = file instanceof URL ? fileURLToPath(file) : file;
  const bytes = readSmallFile(name, { code: 'policy_missing', maxBytes: FILE_MAX_BYTES, stdin });
  const value = parseDocument(bytes, 'policy_invalid', name);
  assertSchema(value, schema, name);
  return value as T;
}

let validator: Ajv2020 | undefined;

/** Validates a value against one of the policy's schemas. @throws PagegateError policy_invalid, with the first problems */
function assertSchema(value: unknown, schema: PolicySchema, name: string): void {
  if (validator === undefined) {
    // Loaded on demand: without a licensee's file, a worker does not need Ajv.
    const { Ajv2020: Validator } = createRequire(import.meta.url)(
      'ajv/dist/2020.js',
    ) as typeof import('ajv/dist/2020.js');
    validator = new Validator({
      allErrors: false,
      strict: true,
      allowUnionTypes: true,
      strictRequired: false,
      verbose: true,
      ...SELDOM_USED_SCHEMA_OPTIONS,
    });
    validator.addSchema(readSchema('parts'));
  }
  const id = `urn:pagegate:schema:policy-${schema}`;
  const validate = validator.getSchema(id) ?? validator.compile(readSchema(schema));
  if (validate(value)) return;
  const problems = withoutAlternatives(validate.errors ?? [])
    .slice(0, 5)
    .map((error) => problemOf(error, value));
  throw new PagegateError('policy_invalid', `${name}: ${problems.join('; ')}.`, { file: name });
}

/** Removes the errors inside single alternatives of an `anyOf`: the error of the `anyOf` itself remains. */
function withoutAlternatives(errors: readonly ErrorObject[]): ErrorObject[] {
  const places = errors.filter(({ keyword }) => keyword === 'anyOf').map(({ schemaPath }) => `${schemaPath}/`);
  return errors.filter(({ schemaPath }) => !places.some((place) => schemaPath.startsWith(place)));
}

function readSchema(name: PolicySchema | 'parts'): AnySchemaObject {
  return JSON.parse(readFileSync(new URL(`policy-${name}.schema.json`, SCHEMA_DIR), 'utf8'));
}

function problemOf(error: ErrorObject, value: unknown): string {
  const pointer = pointerOf(error);
  return `${describePlace(pointer)}${idAt(value, pointer)} ${describeSchemaError(error)}`;
}

/** Returns the id of the innermost entry that contains a JSON pointer, as a suffix for an error message; empty if there is no id. */
function idAt(value: unknown, pointer: string): string {
  let node = value;
  let id: string | undefined;
  for (const step of pointer.split('/').slice(1)) {
    if (typeof node !== 'object' || node === null) break;
    node = (node as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')];
    const nodeId = (node as { id?: unknown } | undefined)?.id;
    if (typeof nodeId === 'string') id = nodeId;
  }
  return id === undefined ? '' : ` (id "${id}")`;
}
