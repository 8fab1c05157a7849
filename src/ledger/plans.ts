/** The plan catalog: which monthly plans exist, and how many lookups each grants in a cycle. */
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ErrorObject, type ValidateFunction, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import { fromSystem, PagegateError } from '../errors.ts';
import { describePlace, describeSchemaError, pointerOf } from '../json/schema-problem.ts';
import { SELDOM_USED_SCHEMA_OPTIONS } from '../json/shipped-schemas.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';

/** The largest limit of a plan, in lookups a cycle. */
const PLAN_LOOKUPS_MAX = LIMITS.planLookups.value;

/** One row of the catalog. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  /** US dollars for 30 days; null where it is agreed case by case. */
  readonly priceUsd: number | null;
  /** Lookups in a cycle; null where each subscription brings its own limit. */
  readonly lookups: number | null;
}

const CATALOG = new URL('../../data/plans.json', import.meta.url);
const SCHEMA = new URL('../../data/schema/plans.schema.json', import.meta.url);

/** The file, as its schema has it. */
interface Catalog {
  readonly plans: readonly {
    readonly id: string;
    readonly name: string;
    readonly price_usd: number | null;
    readonly lookups: number | null;
  }[];
}

/** Compiled with the first catalog that is read. */
let validate: ValidateFunction<Catalog> | undefined;

/**
 * Reads the catalog. An edit counts for subscriptions made after it; what runs keeps the limit recorded with it.
 *
 * @throws PagegateError bad_plan_catalogue when the file cannot be read or breaks its schema.
 */
export function loadPlans(file: string | URL = CATALOG): readonly Plan[] {
  const name = file instanceof URL ? fileURLToPath(file) : file;
  const bytes = readSmallFile(name, { code: 'bad_plan_catalogue', maxBytes: LIMITS.plansBytes.value });
  const catalog = parseDocument(bytes, 'bad_plan_catalogue', name);
  validate ??= new Validator({ allowUnionTypes: true, verbose: true, ...SELDOM_USED_SCHEMA_OPTIONS }).compile<Catalog>(
    JSON.parse(readFileSync(SCHEMA, 'utf8')),
  );
  if (!validate(catalog)) {
    const [error] = validate.errors as [ErrorObject];
    const place = pointerOf(error);
    const what = `${name}: ${describePlace(place)} ${describeSchemaError(error)}.`;
    throw new PagegateError('bad_plan_catalogue', what, { file: name, place });
  }
  const ids = new Set(catalog.plans.map(({ id }) => id));
  if (ids.size !== catalog.plans.length)
    throw new PagegateError('bad_plan_catalogue', `${name}: two plans have the same id.`);
  return catalog.plans.map(({ price_usd: priceUsd, ...plan }) => ({ ...plan, priceUsd }));
}

/**
 * The plan and limit that a subscription records.
 *
 * @param limit lookups a cycle; needed for a plan without a limit of its own, refused for any other.
 * @throws PagegateError unknown_plan or bad_plan_limit.
 */
export function resolvePlan(plans: readonly Plan[], id: string, limit?: number): { plan: string; limit: number } {
  const plan = plans.find((candidate) => candidate.id === id);
  if (plan === undefined) {
    throw new PagegateError('unknown_plan', `Got "${id}"; known: ${plans.map((p) => p.id).join(', ')}.`, { plan: id });
  }
  if (plan.lookups !== null) {
    if (limit !== undefined)
      throw new PagegateError('bad_plan_limit', `Plan ${id} has its own limit; leave --limit out.`);
    return { plan: id, limit: plan.lookups };
  }
  if (limit === undefined || !Number.isInteger(limit) || limit < 1 || limit > PLAN_LOOKUPS_MAX) {
    throw new PagegateError('bad_plan_limit', `Plan ${id} needs --limit, an integer from 1 to ${PLAN_LOOKUPS_MAX}.`);
  }
  return { plan: id, limit };
}

/**
 * The catalog of an installation: plans.json in the state directory where there is one, otherwise the shipped one.
 *
 * @throws PagegateError state_unavailable where nobody can say whether there is one, bad_plan_catalogue
 */
export function loadCatalog(stateDir: string): readonly Plan[] {
  const own = join(stateDir, 'plans.json');
  return isThere(own) ? loadPlans(own) : loadPlans();
}

/** Also a link to nothing: another catalog than the operator's own must not take its place. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw fromSystem('state_unavailable', path, error);
  }
}
