/** The plan catalog: which monthly plans exist, and how many lookups each grants in a cycle. */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fromSystem, PagegateError } from '../errors.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';

/** The largest limit of a plan, in lookups a cycle; it stays well below the counter's 40 bits. */
const PLAN_LOOKUPS_MAX = LIMITS.planLookups.value;
/** A hundred plans take some thousand bytes. */
const FILE_MAX_BYTES = LIMITS.plansBytes.value;

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

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parsePlan(value: unknown, where: string): Plan {
  const bad = (expected: string): never => {
    throw new PagegateError('bad_plan_catalogue', `${where}: expected ${expected}.`);
  };
  if (!isRecord(value)) return bad('an object');
  const { id, name, price_usd: priceUsd, lookups } = value;
  if (typeof id !== 'string' || !/^[a-z][a-z0-9_]{0,31}$/.test(id)) return bad('"id" like pro_plus');
  if (typeof name !== 'string' || name === '' || name.length > 64) return bad('"name" of 1 to 64 characters');
  if (priceUsd !== null && !(typeof priceUsd === 'number' && priceUsd >= 0))
    return bad('"price_usd" of 0 or more, or null');
  const isLimit =
    typeof lookups === 'number' && Number.isInteger(lookups) && lookups >= 1 && lookups <= PLAN_LOOKUPS_MAX;
  if (lookups !== null && !isLimit) return bad(`"lookups" from 1 to ${PLAN_LOOKUPS_MAX}, or null`);
  return { id, name, priceUsd, lookups };
}

/**
 * Reads the catalog. An edit counts for subscriptions made after it; what runs keeps the limit recorded with it.
 *
 * @throws PagegateError bad_plan_catalogue when the file cannot be read or breaks its schema.
 */
export function loadPlans(file: string | URL = CATALOG): readonly Plan[] {
  const name = file instanceof URL ? fileURLToPath(file) : file;
  const bytes = readSmallFile(name, { code: 'bad_plan_catalogue', maxBytes: FILE_MAX_BYTES });
  const parsed = parseDocument(bytes, 'bad_plan_catalogue', name);
  const rows =
    isRecord(parsed) && parsed['version'] === 1 && Array.isArray(parsed['plans']) ? parsed['plans'] : undefined;
  if (rows === undefined || rows.length === 0 || rows.length > 100) {
    throw new PagegateError('bad_plan_catalogue', `${name}: expected "version": 1 and 1 to 100 "plans".`);
  }
  const plans = rows.map((row, i) => parsePlan(row, `${name}, plan ${i}`));
  const ids = new Set(plans.map((plan) => plan.id));
  if (ids.size !== plans.length) throw new PagegateError('bad_plan_catalogue', `${name}: two plans have the same id.`);
  return plans;
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
