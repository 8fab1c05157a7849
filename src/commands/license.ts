/** `pagegate license`: issue (vendor side), install, verify and show the license that governs the data. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import type { Entitlement, License, TrustedKeys } from '../license/license.ts';
import { utc } from '../times.ts';
import { addConfigOptions, type ConfigFlags, configFrom, configToWrite } from './shared/config-options.ts';
import { readKeyFile } from './shared/key-file.ts';
import { printJson, printLine, warn } from './shared/output.ts';

interface TrustOptions extends ConfigFlags {
  readonly json?: true;
  readonly trust?: readonly string[];
}

interface IssueOptions {
  readonly key: string;
  readonly keyName: string;
  readonly licensee: string;
  readonly dataset: string;
  readonly frozen?: readonly string[];
  readonly refreshesUntil?: string;
  readonly id?: string;
}

export function registerLicense(program: Command): void {
  const license = program.command('license').description('the license that governs which data is activated');
  const example = (command: Command, text: string): Command =>
    command.addHelpText('after', `\nExample:\n  $ pagegate ${text}`);
  const trusting = (command: Command): Command =>
    addConfigOptions(command)
      .option('--trust <name=file...>', 'a public key beside those of the configuration, for this command only')
      .option('--json', 'print JSON');

  example(
    license
      .command('keygen')
      .description("make a vendor's key pair: keep the private file offline, give the public one to licensees")
      .requiredOption('--out <prefix>', 'writes <prefix>.private.pem (0600) and <prefix>.public.pem'),
    'license keygen --out vendor-2026',
  ).action(keygen);
  example(
    license
      .command('issue')
      .description('sign a license (vendor side) and print it')
      .requiredOption('--key <file>', 'the private key (PEM); - reads standard input')
      .requiredOption('--key-name <name>', 'the name under which licensees trust the key')
      .requiredOption('--licensee <name>', 'who it is for')
      .requiredOption('--dataset <name>', 'the dataset it is for')
      .option('--frozen <sha256...>', 'the manifests delivered, by their SHA-256')
      .option('--refreshes-until <date>', 'instead of manifests: all drops made up to this day, YYYY-MM-DD')
      .option('--id <text>', 'the license id (default: a new UUID)'),
    'license issue --key v.private.pem --key-name v --licensee "Acme" --dataset web --refreshes-until 2027-06-30 > acme.json',
  ).action(issue);
  example(
    trusting(license.command('install <file>').description('verify a license and put it into the state directory')),
    'license install acme.json --trust v=v.public.pem',
  ).action(async (file: string, options: TrustOptions) => {
    const { installLicense, loadLicense } = await import('../license/installed.ts');
    const { target, trusted, configured, indexFile } = await settings(options, configToWrite);
    const license = installLicense(target, file, trusted);
    let missing: string | undefined;
    try {
      loadLicense(target, configured);
    } catch (error) {
      missing = (error as Error).message;
    }
    print(license, options, `Installed as ${target}.`);
    if (missing !== undefined) warn(untrustedNote(license, missing));
    const uncovered = await uncoveredNote(license, indexFile);
    if (uncovered !== undefined) warn(uncovered);
  });
  example(
    trusting(license.command('verify <file>').description('verify a license without installing it')),
    'license verify acme.json',
  ).action(async (file: string, options: TrustOptions) => {
    const { readLicenseFile } = await import('../license/installed.ts');
    const { trusted } = await settings(options);
    print(readLicenseFile(file, trusted).license, options, 'The signature is valid.');
  });
  example(trusting(license.command('show').description('show the installed license')), 'license show').action(
    async (options: TrustOptions) => {
      const { loadLicense } = await import('../license/installed.ts');
      const { target, trusted } = await settings(options);
      print(loadLicense(target, trusted), options);
    },
  );
}

/** An installed license that only `--trust` of one command trusts would activate nothing. */
function untrustedNote({ signedBy }: License, reason: string): string {
  const setting = `"license": { "trusted_keys": { "${signedBy}": "/path/of/the/public.pem" } }`;
  return `not trusted by the configuration, so nothing is activated with it yet: put ${setting} into it. (${reason})`;
}

/** What is served goes on under a license that does not cover it, but the next start would serve nothing. */
async function uncoveredNote(license: License, indexFile: string): Promise<string | undefined> {
  const { openIndex } = await import('../index/read.ts');
  const { assertEntitled } = await import('../license/license.ts');
  try {
    const index = openIndex(indexFile);
    try {
      assertEntitled(license, index.info);
    } finally {
      index.close();
    }
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'license_not_entitled') return undefined;
    return `${error.message} A running server goes on with it, but does not start with it again. Install a license that covers it, or refresh from a drop that this one covers.`;
  }
  return undefined;
}

interface Settings {
  readonly target: string;
  /** What is served, or would be. */
  readonly indexFile: string;
  /** The keys of the configuration and of `--trust`. */
  readonly trusted: TrustedKeys;
  /** The keys of the configuration, which all other commands and the server go by. */
  readonly configured: TrustedKeys;
}

async function settings(options: TrustOptions, read = configFrom): Promise<Settings> {
  const { statePaths } = await import('../config/paths.ts');
  const { isPem, readTrustedKeys } = await import('../config/trusted-keys.ts');
  const { readLicenseKey } = await import('../license/license.ts');
  const config = await read(options);
  const more = (options.trust ?? []).map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new PagegateError('usage', `--trust: expected name=file, got "${pair.slice(0, 80)}".`);
    const [name, key] = [pair.slice(0, at), pair.slice(at + 1)];
    const pem = isPem(key) ? key : readKeyFile(key, 'bad_license_key');
    // Also one that this command turns out not to need: whoever names a file means it.
    readLicenseKey(pem, 'public', isPem(key) ? name : pair);
    return [name, pem];
  });
  const configured = readTrustedKeys(config.license.trusted_keys);
  const trusted = { ...configured, ...Object.fromEntries(more) };
  const { licenseFile: target, indexFile } = statePaths(config);
  return { target, indexFile, trusted, configured };
}

async function keygen(options: { readonly out: string }): Promise<void> {
  if (/(?:^|\/)\.{0,2}$/.test(options.out))
    throw new PagegateError('usage', `--out: expected the beginning of a file's name, got "${options.out}".`);
  const { rmSync } = await import('node:fs');
  const { writeDurable } = await import('../platform/durable-files.ts');
  const { createLicenseKey } = await import('../license/license.ts');
  const { privateKey, publicKey } = createLicenseKey();
  const write = (file: string, content: string, mode: number): void => {
    try {
      writeDurable(file, content, mode);
    } catch (cause) {
      throw fromSystem('key_pair_not_written', file, cause);
    }
  };
  // The public one first: no private key is made for a name that is taken.
  write(`${options.out}.public.pem`, publicKey, 0o644);
  try {
    write(`${options.out}.private.pem`, privateKey, 0o600);
  } catch (error) {
    rmSync(`${options.out}.public.pem`, { force: true });
    throw error;
  }
  printLine(`${options.out}.private.pem  keep it offline; whoever has it can issue licenses`);
  printLine(`${options.out}.public.pem   goes into license.trusted_keys of every licensee`);
}

async function issue(options: IssueOptions): Promise<void> {
  const { issueLicense } = await import('../license/license.ts');
  if ((options.frozen === undefined) === (options.refreshesUntil === undefined)) {
    throw new PagegateError('usage', 'Give either --frozen or --refreshes-until.');
  }
  const entitlement: Entitlement =
    options.frozen === undefined
      ? { kind: 'refreshes_until', until: options.refreshesUntil! }
      : { kind: 'frozen', manifests: options.frozen };
  const pem = readKeyFile(options.key, 'bad_license_key');
  const terms = { licensee: options.licensee, dataset: options.dataset, entitlement };
  const id = options.id === undefined ? {} : { licenseId: options.id };
  try {
    process.stdout.write(issueLicense({ ...terms, ...id }, pem, options.keyName, options.key));
  } catch (error) {
    // No license was read: what does not fit came from the command line.
    if (error instanceof PagegateError && error.code === 'bad_license') throw new PagegateError('usage', error.what);
    throw error;
  }
}

function print(license: License, options: TrustOptions, note?: string): void {
  const { entitlement } = license;
  if (options.json) {
    printJson({
      license_id: license.licenseId,
      licensee: license.licensee,
      issued_at: utc(license.issued),
      dataset: license.dataset,
      ...(entitlement.kind === 'frozen' ? { frozen: entitlement.manifests } : { refreshes_until: entitlement.until }),
      signed_by: license.signedBy,
    });
    return;
  }
  const covers =
    entitlement.kind === 'frozen'
      ? counted(entitlement.manifests.length, 'frozen drop')
      : `drops made up to ${entitlement.until}`;
  const rows = [
    ['license', license.licenseId],
    ['licensee', license.licensee],
    ['issued', license.issued],
    ['dataset', license.dataset],
    ['covers', covers],
    ['signed by', license.signedBy],
  ];
  for (const [label, text] of rows) printLine(`${label!.padEnd(10)} ${text}`);
  if (note !== undefined) printLine(note);
}
