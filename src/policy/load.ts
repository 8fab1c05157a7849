/** The policy's files: read, checked against their schemas, the licensee's own worked in, compiled. The one place with I/O. */
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

/** A policy file that is larger is refused. */
const FILE_MAX_BYTES = LIMITS.policyBytes.value;

const SHIPPED_DIR = new URL('../../data/policy/', import.meta.url);
const LOOKALIKES = new URL('../../data/unicode/lookalikes.json', import.meta.url);
const SCHEMA_DIR = new URL('../../data/schema/', import.meta.url);

/** A document that comes with the program. */
type ShippedDocument = 'hosts' | 'rules' | 'words' | 'path-contents' | 'defaults';
export type PolicySchema = ShippedDocument | 'licensee' | 'cases';

export interface PolicyOptions {
  /** The licensee's own file. */
  readonly file?: string | undefined;
  /** Whether the file is read this once: then it may be standard input. */
  readonly once?: boolean;
  /** A profile as shipped (`strict`, `default`, `open`); stands above the one that the licensee's file names. */
  readonly profile?: string | undefined;
}

/**
 * Loads and compiles the policy as shipped with the licensee's file worked in. What it throws must stop the start, or leave a running
 * server with the policy that it has.
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
    // The profile of an option is in no file.
    const isOwn = error instanceof PagegateError && file !== undefined && error.details['id'] !== profile;
    if (!isOwn) throw error;
    throw new PagegateError(error.code, `${file}: ${error.what}`, error.details, { cause: error });
  }
}

type HostText = string | Pick<HostEntry, 'host' | 'paths' | 'not_in'>;

/** Hosts as they ship: by group, each with where it was taken from. */
interface HostGroup extends Pick<HostEntry, 'verdict' | 'reads' | 'writes' | 'not_in' | 'note'> {
  readonly id: string;
  readonly sources: readonly { readonly source: string; readonly hosts: readonly HostText[] }[];
}

interface RulesFile {
  readonly ignored_query_names: string;
  readonly identifying_lists: readonly string[];
  readonly rules: readonly RuleEntry[];
}

/** What comes with the program is not checked against its schemas, which would take half of a start: a test does. */
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

/** The entries of a group; the id of each is its host, and what is fixed of the first of its paths. */
function hostsOf({ id: group, sources, ...common }: HostGroup): HostEntry[] {
  return sources
    .flatMap(({ hosts }) => hosts)
    .map((text) => {
      const own = typeof text === 'string' ? { host: text } : text;
      return {
        id: own.host.replace(/^(?:=|\*\.)/, '') + (own.paths?.[0]?.replace(/\/[^/]*\*.*$/, '') ?? ''),
        group,
        ...common,
        ...own,
      };
    });
}

function readLookalikes(): LookalikeData {
  const { confusables, allowed } = JSON.parse(readFileSync(LOOKALIKES, 'utf8')) as LookalikeData;
  return { confusables, allowed };
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

let validator: Ajv2020 | undefined;

/** Checks a value against one of the policy's schemas. @throws PagegateError policy_invalid, with the first problems */
function assertSchema(value: unknown, schema: PolicySchema, name: string): void {
  if (validator === undefined) {
    // Loaded here, because a worker without a policy of the licensee's own needs none.
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

/** The problems without those of single alternatives, of which one would do. */
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
