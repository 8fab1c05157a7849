/** `pagegate drop`: the vendor signs a finished drop; anybody checks one without building from it. */
import type { Command } from 'commander';
import { addConfigOptions, type ConfigFlags, configFrom } from './shared/config-options.ts';
import { readDropKeys, readKeyFile } from './shared/key-file.ts';
import { createProgress, printJson, printLine, withInterrupt } from './shared/output.ts';

interface VerifyFlags extends ConfigFlags {
  readonly unsigned?: true;
  readonly json?: true;
}

interface SignFlags {
  readonly key: string;
  readonly add?: true;
  readonly json?: true;
}

export function registerDrop(program: Command): void {
  const drop = program.command('drop').description('sign a drop (vendor) or verify one without building from it');
  addConfigOptions(drop.command('verify').description('check manifest, signature and every part of a drop'))
    .argument('<dir>', 'the drop: a folder with manifest.json')
    .option('--unsigned', 'accept a drop that has no signature')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate drop verify /srv/drops/2026-05')
    .action(verify);
  drop
    .command('sign')
    .description('check every part of a drop, then sign its manifest (Ed25519, manifest.json.sig)')
    .argument('<dir>', 'the drop: a folder with manifest.json')
    .requiredOption('--key <file>', "the vendor's private key, PEM (PKCS #8); - reads standard input")
    .option('--add', 'keep the signatures that are already there')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate drop sign ./drop --key vendor-private.pem')
    .action(sign);
}

async function verify(dir: string, options: VerifyFlags): Promise<void> {
  const config = await configFrom(options);
  const { checkDrop, checkPartContents } = await import('../refresh/drop-check.ts');
  const trustedKeys = await readDropKeys(config);
  const checked = checkDrop({ drop: dir, trustedKeys, unsigned: options.unsigned === true });
  const progress = createProgress();
  const parts = await withInterrupt((signal) =>
    checkPartContents(dir, checked.manifest, { signal, onPart: (name) => progress.update(`reading ${name}`) }),
  ).finally(() => progress.done());
  const { dataset, revision, created, kind, page_types } = checked.manifest;
  const report = {
    dataset,
    revision,
    created,
    kind,
    page_types,
    manifest_sha256: checked.manifestSha256,
    signed_by: checked.signedBy,
    parts: parts.map((part) => ({
      name: part.name,
      size_bytes: part.sizeBytes,
      unpacked_size_bytes: part.unpackedSizeBytes,
    })),
  };
  if (options.json) {
    printJson(report);
    return;
  }
  const signature = checked.signedBy === null ? 'without a checked signature' : `signed by ${checked.signedBy}`;
  const unpacked = parts.reduce((sum, part) => sum + part.unpackedSizeBytes, 0);
  printLine(`${dataset} revision ${revision}, ${kind}, ${signature}: ${parts.length} parts are intact.`);
  printLine(`They unpack to ${unpacked.toLocaleString('en-US')} bytes. Manifest SHA-256: ${checked.manifestSha256}`);
}

async function sign(dir: string, options: SignFlags): Promise<void> {
  const { assertFull } = await import('../builder/manifest.ts');
  const { checkDrop, checkPartContents } = await import('../refresh/drop-check.ts');
  const { readPrivateKey, writeSignature } = await import('../refresh/drop-signing.ts');
  const key = readPrivateKey(options.key, readKeyFile(options.key, 'signing_key_invalid'));
  const checked = checkDrop({ drop: dir, trustedKeys: [], unsigned: true });
  // What no licensee can take is not signed.
  assertFull(checked.manifest);
  const parts = await withInterrupt((signal) => checkPartContents(dir, checked.manifest, { signal }));
  const file = writeSignature(dir, checked.manifestBytes, key, options.add === true);
  const report = { file, manifest_sha256: checked.manifestSha256, parts: parts.length };
  if (options.json) printJson(report);
  else printLine(`Signed: ${file} (${parts.length} parts are intact; manifest SHA-256 ${checked.manifestSha256}).`);
}
