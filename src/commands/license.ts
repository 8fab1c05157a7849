/** `pagegate license`: issues (vendor side), installs, verifies and shows the license for the data. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import type { Entitlement, License, TrustedKeys } from '../license/license.ts';
import { looksLikeKey } from '../platform/small-file.ts';
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
      .option(
        '--trust <name=file...>',
        'public keys to trust besides those of the configuration, for this command only',
      )
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
      .requiredOption('--licensee <name>', 'whom the license is for')
      .requiredOption('--dataset <name>', 'the dataset that the license covers')
      .option('--frozen <sha256...>', 'the covered drops, by the SHA-256 of their manifests')
      .option('--refreshes-until <date>', 'instead of --frozen: all drops made up to this day, YYYY-MM-DD')
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

/** A license that was verified only with `--trust` activates nothing: the server and other commands use the configured keys. */
function untrustedNote({ signedBy }: License, reason: string): string {
  const setting = `"license": { "trusted_keys": { "${signedBy}": "/path/of/the/public.pem" } }`;
  return `the configuration does not trust this license, so nothing is activated with it yet: add ${setting} to the configuration. (${reason})`;
}

/** Returns a warning if the license does not cover the served index: the running server keeps it, but the next start would refuse it. */
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
    return `${error.message} A running server keeps serving it, but the next start refuses it. Install a license that covers it, or refresh from a drop that this license covers.`;
  }
  return undefined;
}

interface Settings {
  readonly target: string;
  /** The index file that a server opens. */
  readonly indexFile: string;
  /** The keys of the configuration and of `--trust`. */
  readonly trusted: TrustedKeys;
  /** The keys of the configuration, which the server and all other commands use. */
  readonly configured: TrustedKeys;
}

async function settings(options: TrustOptions, read = configFrom): Promise<Settings> {
  const { statePaths } = await import('../config/paths.ts');
  const { isPem, readTrustedKeys } = await import('../config/trusted-keys.ts');
  const { readLicenseKey } = await import('../license/license.ts');
  const config = await read(options);
  const more = (options.trust ?? []).map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) {
      const got = looksLikeKey(pair) ? 'what looks like a key' : `"${pair.slice(0, 80)}"`;
      throw new PagegateError('usage', `--trust: expected name=file, got ${got}.`);
    }
    const [name, key] = [pair.slice(0, at), pair.slice(at + 1)];
    const pem = isPem(key) ? key : readKeyFile(key, '--trust', 'bad_license_key');
    // Check every key, even if this command does not need it: a wrong file is reported.
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
    throw new PagegateError('usage', `--out: expected the prefix of a file name, got "${options.out}".`);
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
  // The public key first: if its name is already in use, no private key is written.
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
  const pem = readKeyFile(options.key, '--key', 'bad_license_key');
  const terms = { licensee: options.licensee, dataset: options.dataset, entitlement };
  const id = options.id === undefined ? {} : { licenseId: options.id };
  try {
    process.stdout.write(issueLicense({ ...terms, ...id }, pem, options.keyName, options.key));
  } catch (error) {
    // No license was read here: the invalid value came from the command line.
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
