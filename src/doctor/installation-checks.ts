/** Checks what the program keeps (index, license, keys, policy, plans, ledger), and the running server. */
import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { counted, withCommas } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import type { IndexInfo } from '../index/read.ts';
import type { LedgerFacts } from '../ledger/check.ts';
import type { Generation, GenerationReport } from '../refresh/store.ts';
import type { ServerStatus } from '../server/status.ts';
import { DAY_MS } from '../times.ts';
import { type Check, type CheckOutcome, days, ok, problem, SOON_DAYS, skipped, warning } from './check.ts';
import { FLEET_CHECKS } from './fleet-checks.ts';
import { LISTENER_CHECKS } from './listener-checks.ts';
import { PERMISSION_CHECKS } from './permission-checks.ts';

async function servedIndex(config: Config): Promise<IndexInfo | undefined> {
  const { openIndex } = await import('../index/read.ts');
  const path = statePaths(config).indexFile;
  if (!existsSync(path)) return undefined;
  const index = openIndex(path);
  try {
    return index.info;
  } finally {
    index.close();
  }
}

/** The same for other checks; undefined if it cannot be opened, which the check of the index reports. */
const openableIndex = (config: Config) => servedIndex(config).catch(() => undefined);

async function checkIndex(config: Config): Promise<CheckOutcome> {
  const { currentGeneration, listGenerations } = await import('../refresh/store.ts');
  const paths = statePaths(config);
  const named = config.index.path === null ? currentGeneration(paths.indexDir) : undefined;
  const info = await servedIndex(config);
  if (info === undefined && named !== undefined) {
    const [kept] = listGenerations(paths.indexDir).slice(-1);
    const other = kept === undefined ? '' : `, or serve another generation: pagegate rollback --to ${kept.generation}`;
    return problem(
      `the index of generation ${named} is missing`,
      `Build it from a drop: pagegate refresh DROP${other}`,
    );
  }
  if (info === undefined) {
    return problem(`there is no ${paths.indexFile}`, 'Build the first index from a drop: pagegate refresh DROP');
  }
  const age = Date.now() - Date.parse(info.created);
  const found = `generation ${info.generation}, ${info.dataset} revision ${info.revision}, ${counted(info.recordCount, 'record')}, ${counted(days(age), 'day')} old`;
  if (info.recordCount === 0)
    return warning(found, 'Every domain is unknown: run pagegate rollback, or refresh from a drop with records.');
  if (age < -DAY_MS)
    return warning(found, `The drop was made at ${info.created}, which is in the future: check the clock.`);
  return ok(found);
}

async function checkUnicode(config: Config): Promise<CheckOutcome> {
  const { UNICODE_VERSION } = await import('../domain/host-key.ts');
  const { isOwnVocabulary, VOCABULARY_VERSION } = await import('../record/vocabulary.ts');
  const info = await openableIndex(config);
  if (info === undefined) return skipped('there is no index that can be opened');
  if (!isOwnVocabulary(info.vocabulary)) {
    const { name, version } = info.vocabulary;
    const found = `the index has page-type vocabulary ${name} ${version}, the program has ${VOCABULARY_VERSION}`;
    return problem(found, 'Build the index again with this program: pagegate refresh DROP --rebuild');
  }
  const found = `the index was normalized with Unicode ${info.unicodeVersion}, the program has ${UNICODE_VERSION}`;
  if (info.unicodeVersion === UNICODE_VERSION)
    return ok(`Unicode ${UNICODE_VERSION}, vocabulary ${VOCABULARY_VERSION}`);
  return warning(found, 'A few international names may not be found: pagegate refresh DROP --rebuild');
}

/** Estimates the free space that the next build needs, in bytes, if the next drop is like the served one. */
function buildNeeds(served: GenerationReport | undefined): number {
  const { tempEstimateBytes, tempUsedBytes } = (served?.build ?? {}) as Readonly<Record<string, unknown>>;
  // Before and during a build, the builder requires space for its temporary files and about the same again for the index.
  return 2 * Math.max(0, ...[tempEstimateBytes, tempUsedBytes].filter((bytes) => typeof bytes === 'number'));
}

/** Warns of a generation that is not what its report says: no refresh or rollback uses it. */
function damagedGeneration(generations: readonly Generation[], info: IndexInfo | undefined): CheckOutcome | undefined {
  const served = generations.find((one) => one.current);
  const rebuild = 'Build it again from its drop: pagegate refresh DROP';
  if (served !== undefined && info !== undefined && served.report?.manifestSha256 !== info.manifestSha256) {
    const report = served.report === undefined ? 'has no report' : 'has the report of another drop than its index';
    return warning(`generation ${served.generation}, which is served, ${report}`, rebuild);
  }
  const damaged = generations.find((one) => !one.current && one.report === undefined);
  if (damaged === undefined) return undefined;
  return warning(
    `generation ${damaged.generation} has no report`,
    `It cannot be activated: remove ${damaged.directory}, or wait until a refresh removes it.`,
  );
}

async function checkStore(config: Config): Promise<CheckOutcome> {
  const { nextNumber } = await import('../refresh/generation-numbers.ts');
  const { listGenerations, listLitter } = await import('../refresh/store.ts');
  const { indexDir } = statePaths(config);
  if (statSync(indexDir, { throwIfNoEntry: false }) === undefined) return skipped('no index store yet');
  const generations = listGenerations(indexDir);
  nextNumber(indexDir, generations);
  const damaged = damagedGeneration(generations, config.index.path === null ? await openableIndex(config) : undefined);
  const litter = listLitter(indexDir);
  const found = `${counted(generations.length, 'generation')} kept, ${counted(litter.length, 'leftover')}`;
  if (damaged !== undefined) return damaged;
  if (litter.length > 0) return warning(found, 'They are from an interrupted refresh; remove them: pagegate prune');
  const served = generations.find((one) => one.current)?.report;
  const { bavail, bsize } = statfsSync(indexDir);
  const needed = buildNeeds(served);
  if (bavail * bsize >= needed) return ok(found);
  return warning(
    `${counted(bavail * bsize, 'byte')} free`,
    `The next refresh may need ${withCommas(needed)}: free some space, or keep fewer generations.`,
  );
}

async function checkLicense(config: Config): Promise<CheckOutcome> {
  const { readTrustedKeys } = await import('../config/trusted-keys.ts');
  const { loadLicense } = await import('../license/installed.ts');
  const { assertEntitled, endOfDayMs } = await import('../license/license.ts');
  const license = loadLicense(statePaths(config).licenseFile, readTrustedKeys(config.license.trusted_keys));
  const info = await openableIndex(config);
  if (info !== undefined) assertEntitled(license, info);
  const { entitlement, licensee, licenseId } = license;
  if (entitlement.kind === 'frozen') {
    return ok(`${licensee} (${licenseId}), for ${entitlement.manifests.length} frozen drops of ${license.dataset}`);
  }
  const found = `${licensee} (${licenseId}), drops of ${license.dataset} made up to ${entitlement.until}`;
  const left = endOfDayMs(entitlement.until) - Date.now();
  if (left >= SOON_DAYS * DAY_MS) return ok(found);
  const when = left < 0 ? 'It has ended' : `It ends in ${counted(days(left), 'day')}`;
  return warning(
    found,
    `${when}: the served data stays in use, newer drops are refused. Ask the vendor for a new license.`,
  );
}

async function checkDropKeys(config: Config): Promise<CheckOutcome> {
  const { readDropKeys } = await import('../refresh-steps/drop-keys.ts');
  const keys = readDropKeys(config);
  if (keys.length > 0) return ok(`drops may be signed by ${keys.map((key) => key.name).join(', ')}`);
  return warning(
    'no key for drops is trusted',
    'Add the vendor key to refresh.trusted_keys; without it a refresh needs --unsigned.',
  );
}

/** Checks the folder for drops: a timer that looks into a missing folder never reports that no drop comes. */
function checkDrop({ refresh: { drop } }: Config): CheckOutcome {
  if (drop === null) return skipped('refresh.drop is not set: each refresh needs its drop as an argument');
  try {
    readdirSync(drop);
    return ok(`drops are read from ${drop}`);
  } catch (error) {
    const advice = `Correct refresh.drop, or create the folder and let this user read it: ${(error as Error).message}`;
    return warning(`drops cannot be read from ${drop}`, advice);
  }
}

async function checkPlans(config: Config): Promise<CheckOutcome> {
  const { loadCatalog } = await import('../ledger/plans.ts');
  return ok(counted(loadCatalog(config.state_dir).length, 'plan'));
}

async function checkPolicy(config: Config): Promise<CheckOutcome> {
  const { openPolicy } = await import('../server/data-loader.ts');
  const policy = openPolicy(config);
  const found = `profile ${policy.profile}, revision ${policy.revision}`;
  return policy.warnings.length === 0 ? ok(found) : warning(found, policy.warnings.join(' '));
}

async function checkLedger(config: Config): Promise<CheckOutcome> {
  const { readLedgerFacts } = await import('../ledger/check.ts');
  const { ledgerFile } = statePaths(config);
  const found = readLedgerFacts(ledgerFile, Math.floor(Date.now() / 1000));
  const isCopy = config.ledger.url !== null;
  if (found === undefined && isCopy) return skipped('this node creates its copy of the ledger when it starts');
  if (found === undefined)
    return warning(`there is no ${ledgerFile}`, 'The first account creates it: pagegate account create NAME');
  const { accounts, movedTo, damage, clock, counters } = found;
  if (movedTo !== null) return problem(`${ledgerFile} was moved to ${movedTo}`, 'Set ledger.url.');
  if (damage !== undefined) return problem(`quick_check: ${damage}`, 'Restore a backup: see docs/operations.md.');
  // A fleet uses the clock of its database.
  if (clock !== undefined && !isCopy) return problem(counted(accounts, 'account'), clock);
  if (counters?.isInMemory === false)
    return warning(
      `the shared counters are on disk: ${counters.path}`,
      'Charges may wait for the disk: free 8 MB in /dev/shm, or enlarge it.',
    );
  if (accounts === 0) return warning('there is no account', 'Create one: pagegate account create NAME');
  return (await unreadableKeys(config, found)) ?? ok(`${counted(accounts, 'account')}, intact`);
}

/** Finds API keys that work for lookups but cannot be shown again, because their encryption key is missing. */
async function unreadableKeys(config: Config, { keysSealedBy }: LedgerFacts): Promise<CheckOutcome | undefined> {
  const { ledgerKeyFile } = statePaths(config);
  const { findKeyVault } = await import('../ledger/check.ts');
  const vault = findKeyVault(ledgerKeyFile);
  const foreign = [...keysSealedBy].filter(([id]) => id !== vault?.id);
  if (foreign.length === 0) return undefined;
  const keys = foreign.reduce((sum, [, count]) => sum + count, 0);
  const here = vault === undefined ? `there is no ${ledgerKeyFile}` : `${ledgerKeyFile} has the key ${vault.id}`;
  const mend = config.ledger.url === null ? 'put that file back' : 'copy the file of another node';
  return warning(
    `${counted(keys, 'API key')} encrypted with ${foreign.map(([id]) => id).join(', ')}; ${here}`,
    `They work for lookups, but cannot be shown again: ${mend}, or rotate the keys. ` +
      'Ignore this if the file is a credential of systemd that only the server gets.',
  );
}

/** Asks the running server for its status: it may be unable to serve even if every file is in order. */
async function checkServer(config: Config): Promise<CheckOutcome> {
  const { askServer } = await import('../server/control-socket.ts');
  const { socket } = statePaths(config);
  try {
    const { ready, reasons, warnings } = (await askServer(socket, 'status', 5_000)) as ServerStatus;
    const found = `a server answers on ${socket}`;
    if (!ready) return problem(`${found}, but is not ready`, `It reports: ${reasons.join('; ')}`);
    return warnings.length === 0 ? ok(found) : warning(`${found}, with warnings`, `It reports: ${warnings.join('; ')}`);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'server_not_running') throw error;
    return skipped(`no server answers on ${socket}`);
  }
}

export const STATE_CHECKS: readonly Check[] = [
  ...PERMISSION_CHECKS,
  ...LISTENER_CHECKS,
  { id: 'index', run: checkIndex },
  { id: 'versions', run: checkUnicode },
  { id: 'index_store', run: checkStore },
  { id: 'license', run: checkLicense },
  { id: 'drop_keys', run: checkDropKeys },
  { id: 'drop', run: checkDrop },
  { id: 'policy', run: checkPolicy },
  { id: 'plans', run: checkPlans },
  { id: 'ledger', run: checkLedger },
  ...FLEET_CHECKS,
  { id: 'server', run: checkServer },
];
