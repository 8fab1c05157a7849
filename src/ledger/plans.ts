/** The plan catalog: the available plans, their prices, and how many lookups each grants in a cycle. */
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

/** The largest limit of a plan, in lookups per cycle. */
const PLAN_LOOKUPS_MAX = LIMITS.planLookups.value;

/** One row of the catalog. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  /** US dollars for 30 days; null if it is agreed case by case. */
  readonly priceUsd: number | null;
  /** Lookups in a cycle; null if each subscription sets its own limit. */
  readonly lookups: number | null;
}

const CATALOG = new URL('../../data/plans.json', import.meta.url);
const SCHEMA = new URL('../../data/schema/plans.schema.json', import.meta.url);

/** The file's content, as its schema defines it. */
interface Catalog {
  readonly plans: readonly {
    readonly id: string;
    readonly name: string;
    readonly price_usd: number | null;
    readonly lookups: number | null;
  }[];
}

/** Compiled when the first catalog is read. */
let validate: ValidateFunction<Catalog> | undefined;

/**
 * Reads a catalog. A change of the file applies to later subscriptions; existing ones keep the limit that was recorded with them.
 *
 * @throws PagegateError bad_plan_catalogue if the file cannot be read or violates its schema.
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
 * Returns the plan and limit that a subscription records.
 *
 * @param limit lookups per cycle: required for a plan without a limit of its own, refused for all others.
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
 * Loads the catalog of an installation: `plans.json` in the state directory if it exists, otherwise the shipped one.
 *
 * @throws PagegateError state_unavailable if it cannot be determined whether the file exists, bad_plan_catalogue
 */
export function loadCatalog(stateDir: string): readonly Plan[] {
  const custom = join(stateDir, 'plans.json');
  return isThere(custom) ? loadPlans(custom) : loadPlans();
}

/** Whether a path exists. A dangling link counts: the shipped catalog must not silently replace the operator's. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw fromSystem('state_unavailable', path, error);
  }
}
