/** Checks of what the program keeps and how it is reached: permissions, listeners, certificate, license, keys, index, policy, ledger, the running server. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { type Config, isPlainBeyondLoopback } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import type { LedgerFacts } from '../ledger/check.ts';
import { LIMITS } from '../limits.ts';
import type { GenerationReport } from '../refresh/store.ts';
import type { ServerStatus } from '../server/status.ts';
import { type Check, type Outcome, ok, problem, skipped, warning } from './check.ts';
import { FLEET_CHECKS } from './fleet-checks.ts';
import { modeOf, PERMISSION_CHECKS } from './permission-checks.ts';

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;

const days = (ms: number): number => Math.floor(ms / DAY_MS);

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Listeners that want one port of one address. */
function checkPorts(config: Config): Outcome[] {
  const listeners = (['server', 'admin', 'console'] as const)
    .map((name) => ({ name, enabled: true, ...config[name] }))
    .filter(({ enabled, port }) => enabled && port !== 0);
  const overlap = (host: string, other: string): boolean =>
    host === other || ALL_ADDRESSES.has(host) || ALL_ADDRESSES.has(other);
  return listeners.flatMap(({ name, host, port }, at) =>
    listeners
      .slice(at + 1)
      .filter((other) => other.port === port && overlap(host, other.host))
      .map((other) => problem(`${name}.port and ${other.name}.port are ${port}`, 'Give each a port of its own.')),
  );
}

function checkSocketPath(config: Config): Outcome[] {
  const { socket } = statePaths(config);
  const size = Buffer.byteLength(socket);
  const most = LIMITS.socketPathBytes.value;
  return size <= most
    ? []
    : [problem(`${socket} has ${size} bytes`, `A socket's path has at most ${most}: set admin.socket.`)];
}

/** What `serve` would say of its addresses before it starts. */
async function checkListeners(config: Config): Promise<Outcome[]> {
  const { isLoopback } = await import('../network/address.ts');
  const { server, admin, console } = config;
  const findings = [...checkPorts(config), ...checkSocketPath(config)];
  if (console.enabled && isPlainBeyondLoopback(config, console.host))
    findings.push(problem(`console.host is ${console.host}, without TLS`, 'The console needs tls there.'));
  if (isPlainBeyondLoopback(config, server.host)) {
    const found = `server.host is ${server.host}, without TLS`;
    findings.push(
      server.plain_http_anywhere
        ? warning(found, 'API keys cross the network in clear; configure tls.')
        : problem(`plain_http_refused: ${found}`, new PagegateError('plain_http_refused').message),
    );
  }
  if (admin.enabled && !isLoopback(admin.host)) {
    findings.push(
      warning(`admin.host is ${admin.host}`, 'It asks for no key: keep it on loopback or behind a firewall.'),
    );
  }
  return findings.length > 0 ? findings : [ok(`lookups on ${server.host}, port ${server.port}`)];
}

async function checkCertificate(config: Config): Promise<Outcome> {
  const { certificate_file, key_file } = config.tls;
  if (certificate_file === null || key_file === null) {
    return skipped('no certificate: plain HTTP, which is for loopback only');
  }
  const { readChain } = await import('../server/read-certificate.ts');
  const { certificate } = readChain(certificate_file);
  const left = Date.parse(certificate.validTo) - Date.now();
  const found = `${certificate.subject.replaceAll('\n', ', ')}, valid to ${certificate.validTo}`;
  if (left < 0)
    return problem(found, 'The certificate has expired: clients refuse it. Replace it, then "pagegate reload".');
  if (Date.parse(certificate.validFrom) > Date.now()) {
    return problem(found, `It is valid only from ${certificate.validFrom}: check the clock or the certificate.`);
  }
  const key = statSync(key_file);
  if ((key.mode & 0o007) !== 0)
    return problem(`${key_file} has mode ${modeOf(key)}`, `Others may use the key: chmod o= ${key_file}`);
  if (left >= SOON_DAYS * DAY_MS) return ok(`${found} (${counted(days(left), 'day')})`);
  return warning(found, `It expires in ${counted(days(left), 'day')}: replace it, then "pagegate reload".`);
}

async function checkPrivateKey(config: Config): Promise<Outcome> {
  const { certificate_file, key_file } = config.tls;
  if (certificate_file === null || key_file === null) return skipped('no certificate');
  const { readCertificate } = await import('../server/read-certificate.ts');
  readCertificate(certificate_file, key_file);
  return ok('the private key fits the certificate');
}

async function servedIndex(config: Config): Promise<import('../index/read.ts').IndexInfo | undefined> {
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

/** The same for checks of something else: that it cannot be opened is told by the check of the index. */
const openableIndex = (config: Config) => servedIndex(config).catch(() => undefined);

async function checkIndex(config: Config): Promise<Outcome> {
  const { currentGeneration } = await import('../refresh/store.ts');
  const paths = statePaths(config);
  if (config.index.path === null) currentGeneration(paths.indexDir);
  const info = await servedIndex(config);
  if (info === undefined) {
    return problem(`there is no ${paths.indexFile}`, 'Bring the first drop: pagegate refresh DROP');
  }
  const age = Date.now() - Date.parse(info.created);
  const found = `generation ${info.generation}, ${info.dataset} revision ${info.revision}, ${counted(info.recordCount, 'record')}, ${counted(days(age), 'day')} old`;
  if (info.recordCount === 0)
    return warning(found, 'No domain is found in it: pagegate rollback, or refresh from a drop with records.');
  if (age < -DAY_MS) return warning(found, `The drop was made at ${info.created}, in the future: check the clock.`);
  return ok(found);
}

async function checkUnicode(config: Config): Promise<Outcome> {
  const { UNICODE_VERSION } = await import('../domain/host-key.ts');
  const { isOwnVocabulary, VOCABULARY_VERSION } = await import('../record/vocabulary.ts');
  const info = await openableIndex(config);
  if (info === undefined) return skipped('no index, or none that can be opened');
  if (!isOwnVocabulary(info.vocabulary)) {
    const { name, version } = info.vocabulary;
    const found = `the index has page-type vocabulary ${name} ${version}, the program ${VOCABULARY_VERSION}`;
    return problem(found, 'Build the index again from its drop with this program: pagegate refresh DROP --rebuild');
  }
  const found = `the index was normalized with Unicode ${info.unicodeVersion}, the program has ${UNICODE_VERSION}`;
  if (info.unicodeVersion === UNICODE_VERSION)
    return ok(`Unicode ${UNICODE_VERSION}, vocabulary ${VOCABULARY_VERSION}`);
  return warning(found, 'A few international names may not be found: pagegate refresh DROP --rebuild');
}

/** Free space that the next build will ask for, in bytes, if the next drop is like the served one. */
function buildNeeds(served: GenerationReport | undefined): number {
  const { tempEstimateBytes } = (served?.build ?? {}) as { tempEstimateBytes?: unknown };
  // The builder asks for its temporary files and for about the same again for the index.
  return typeof tempEstimateBytes === 'number' ? 2 * tempEstimateBytes : 0;
}

async function checkStore(config: Config): Promise<Outcome> {
  const { nextNumber } = await import('../refresh/generation-numbers.ts');
  const { listGenerations, listLitter } = await import('../refresh/store.ts');
  const { indexDir } = statePaths(config);
  if (statSync(indexDir, { throwIfNoEntry: false }) === undefined) return skipped('no index store yet');
  const generations = listGenerations(indexDir);
  nextNumber(indexDir, generations);
  const damaged = generations.filter((one) => one.report === undefined).map((one) => one.generation);
  const litter = listLitter(indexDir);
  const found = `${counted(generations.length, 'generation')} kept, ${counted(litter.length, 'leftover')}`;
  if (damaged.length > 0)
    return warning(`generation ${damaged.join(', ')} has no report`, 'It cannot be activated: pagegate prune --keep 1');
  if (litter.length > 0) return warning(found, 'An interrupted refresh left them: pagegate prune');
  const served = generations.find((one) => one.current)?.report;
  const { bavail, bsize } = statfsSync(indexDir);
  const needed = buildNeeds(served);
  if (bavail * bsize >= needed) return ok(found);
  return warning(
    `${bavail * bsize} bytes are free`,
    `The next refresh may need ${needed}: free some, or keep fewer generations.`,
  );
}

async function checkLicense(config: Config): Promise<Outcome> {
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
  return warning(found, `${when}: what is served goes on, newer drops will be refused. Ask the vendor.`);
}

async function checkDropKeys(config: Config): Promise<Outcome> {
  const { readDropKeys } = await import('../refresh-steps/drop-keys.ts');
  const keys = readDropKeys(config);
  if (keys.length > 0) return ok(`drops may be signed by ${keys.map((key) => key.name).join(', ')}`);
  return warning('no key is trusted', 'A refresh needs --unsigned; put the vendor key into refresh.trusted_keys.');
}

async function checkPolicy(config: Config): Promise<Outcome> {
  const { openPolicy } = await import('../server/data-loader.ts');
  const policy = openPolicy(config);
  const found = `profile ${policy.profile}, revision ${policy.revision}`;
  return policy.warnings.length === 0 ? ok(found) : warning(found, policy.warnings.join(' '));
}

async function checkLedger(config: Config): Promise<Outcome> {
  const { readLedgerFacts } = await import('../ledger/check.ts');
  const { ledgerFile } = statePaths(config);
  const found = readLedgerFacts(ledgerFile, Math.floor(Date.now() / 1000));
  const isCopy = config.ledger.url !== null;
  if (found === undefined && isCopy) return skipped('this node makes its copy of the ledger when it starts');
  if (found === undefined)
    return warning(`there is no ${ledgerFile}`, 'The first account makes it: pagegate account create NAME');
  const { accounts, movedTo, damage, clock, counters } = found;
  if (movedTo !== null) return problem(`${ledgerFile} was moved to ${movedTo}`, 'Set ledger.url.');
  if (damage !== undefined) return problem(`quick_check: ${damage}`, 'Restore a backup: see docs/operations.md.');
  // A fleet goes by its database's clock.
  if (clock !== undefined && !isCopy) return problem(counted(accounts, 'account'), clock);
  if (counters?.isInMemory === false)
    return warning(
      `the shared counters are ${counters.path}`,
      'A charge may wait for the disk: give /dev/shm 8 MB more.',
    );
  if (accounts === 0) return warning('no account', 'Make one: pagegate account create NAME');
  return (await unreadableKeys(config, found)) ?? ok(`${counted(accounts, 'account')}, intact`);
}

/** Keys that open lookups, and that nobody can be shown again. */
async function unreadableKeys(config: Config, { keysSealedBy }: LedgerFacts): Promise<Outcome | undefined> {
  const { ledgerKeyFile } = statePaths(config);
  const { findKeyVault } = await import('../ledger/check.ts');
  const vault = findKeyVault(ledgerKeyFile);
  const others = [...keysSealedBy].filter(([id]) => id !== vault?.id);
  if (others.length === 0) return undefined;
  const keys = others.reduce((sum, [, count]) => sum + count, 0);
  const here = vault === undefined ? `there is no ${ledgerKeyFile}` : `${ledgerKeyFile} is ${vault.id}`;
  const mend = config.ledger.url === null ? 'put that file back' : 'copy the file of another node';
  return warning(
    `${counted(keys, 'key')} sealed by ${others.map(([id]) => id).join(', ')}; ${here}`,
    `They open lookups, but nobody can be shown them: ${mend}, or rotate the keys. ` +
      'All is well where only the server gets it, as a credential of systemd.',
  );
}

/** What the running server says of itself: it may be unable to serve where every file is as it should be. */
async function checkServer(config: Config): Promise<Outcome> {
  const { askServer } = await import('../server/control-socket.ts');
  const { socket } = statePaths(config);
  try {
    const { ready, reasons, warnings } = (await askServer(socket, 'status', 5_000)) as ServerStatus;
    const found = `a server answers on ${socket}`;
    if (!ready) return problem(`${found}, and is not ready`, `It says: ${reasons.join('; ')}`);
    return warnings.length === 0 ? ok(found) : warning(`${found}, and warns`, `It says: ${warnings.join('; ')}`);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'server_not_running') throw error;
    return skipped(`no server answers on ${socket}`);
  }
}

export const STATE_CHECKS: readonly Check[] = [
  ...PERMISSION_CHECKS,
  { id: 'listeners', run: checkListeners },
  { id: 'certificate', run: checkCertificate },
  { id: 'private_key', run: checkPrivateKey },
  { id: 'index', run: checkIndex },
  { id: 'versions', run: checkUnicode },
  { id: 'index_store', run: checkStore },
  { id: 'license', run: checkLicense },
  { id: 'drop_keys', run: checkDropKeys },
  { id: 'policy', run: checkPolicy },
  { id: 'ledger', run: checkLedger },
  ...FLEET_CHECKS,
  { id: 'server', run: checkServer },
];
