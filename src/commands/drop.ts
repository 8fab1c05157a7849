/** `pagegate drop`: makes and signs the manifest of a drop (vendor), or verifies a drop without building from it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { counted, withCommas } from '../counted.ts';
import type { CheckedDrop, PartReport } from '../drop/check-drop.ts';
import { readSmallFile } from '../platform/small-file.ts';
import { utc } from '../times.ts';
import { addConfigOptions, type ConfigFlags, configFrom } from './shared/config-options.ts';
import { readKeyFile } from './shared/key-file.ts';
import { parsePositive } from './shared/numbers.ts';
import { printJson, printLine, withProgress } from './shared/output.ts';

interface VerifyFlags extends ConfigFlags {
  readonly unsigned?: true;
  readonly json?: true;
}

interface SignFlags {
  readonly key: string;
  readonly add?: true;
  readonly json?: true;
}

interface ManifestFlags {
  readonly dataset: string;
  readonly revision: number;
  readonly pageTypes: 'complete' | 'partial';
  readonly created?: string;
  readonly notice?: string;
  readonly json?: true;
}

/** Maximum size of the file that is read. The schema of the manifest limits the notice itself to 65,536 characters. */
const NOTICE_MAX_BYTES = 1 << 20;

export function registerDrop(program: Command): void {
  const drop = program
    .command('drop')
    .description('make the manifest of a drop and sign it (vendor), or verify a drop without building from it');
  drop
    .command('manifest')
    .description('write manifest.json for the *.ndjson, *.ndjson.gz and *.ndjson.zst in a folder')
    .argument('<dir>', 'folder that holds the parts')
    .requiredOption('--dataset <id>', 'which data set: lower-case letters, digits, ., _ and -, at most 64')
    .option('--revision <n>', 'must grow with every drop of the data set', parsePositive, 1)
    .addOption(
      new Option('--page-types <what>', 'partial, or complete: a page type that a domain lacks is known not to exist')
        .choices(['complete', 'partial'])
        .default('partial'),
    )
    .option('--created <time>', 'when the drop was made, RFC 3339 (default: now)')
    .option('--notice <file>', 'sources and licenses, for people; - reads standard input')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate drop manifest ./drop --dataset example --revision 12')
    .action(makeManifestOf);
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

async function makeManifestOf(dir: string, options: ManifestFlags): Promise<void> {
  const { makeManifest } = await import('../drop/make-manifest.ts');
  const { MANIFEST_FILE, SIGNATURE_FILE } = await import('../drop/drop-files.ts');
  const facts = {
    dataset: options.dataset,
    revision: options.revision,
    created: options.created ?? new Date().toISOString(),
    pageTypes: options.pageTypes,
    ...(options.notice === undefined ? {} : { notice: readNotice(options.notice) }),
  };
  const manifest = await withProgress((progress, signal) =>
    makeManifest(dir, facts, { signal, onPart: (name) => progress.update({ what: `reading ${name}` }) }),
  );
  const file = join(dir, MANIFEST_FILE);
  const records = manifest.files.reduce((sum, part) => sum + part.records, 0);
  // An existing signature is over the bytes of the previous manifest.
  const isSigned = existsSync(join(dir, SIGNATURE_FILE));
  if (options.json) printJson({ file, parts: manifest.files.length, records, stale_signature: isSigned });
  else {
    printLine(`${file}: ${counted(manifest.files.length, 'part')}, ${counted(records, 'record')}.`);
    if (isSigned) printLine(`${SIGNATURE_FILE} is the signature of the previous manifest: sign the drop again.`);
  }
}

function readNotice(path: string): string {
  return readSmallFile(path, { code: 'notice_unreadable', maxBytes: NOTICE_MAX_BYTES, stdin: true }).toString();
}

async function checkContents(dir: string, checked: CheckedDrop): Promise<PartReport[]> {
  const { checkPartContents } = await import('../drop/check-drop.ts');
  return withProgress((progress, signal) =>
    checkPartContents(dir, checked.manifest, {
      signal,
      onPart: (name) => progress.update({ what: `reading ${name}` }),
    }),
  );
}

async function verify(dir: string, options: VerifyFlags): Promise<void> {
  const config = await configFrom(options);
  const { checkDrop } = await import('../drop/check-drop.ts');
  const { readDropKeys } = await import('../refresh-steps/drop-keys.ts');
  const trustedKeys = readDropKeys(config);
  const checked = checkDrop({ drop: dir, trustedKeys, unsigned: options.unsigned === true });
  const parts = await checkContents(dir, checked);
  const { dataset, revision, created, kind, page_types } = checked.manifest;
  const report = {
    dataset,
    revision,
    created_at: utc(created),
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
  printLine(`${dataset} revision ${revision}, ${kind}, ${signature}: ${intact(parts.length)}.`);
  printLine(`They unpack to ${withCommas(unpacked)} bytes. Manifest SHA-256: ${checked.manifestSha256}`);
}

async function sign(dir: string, options: SignFlags): Promise<void> {
  const { assertFullDrop } = await import('../drop/manifest.ts');
  const { checkDrop } = await import('../drop/check-drop.ts');
  const { readSigningKey, writeSignature } = await import('../drop/sign-drop.ts');
  const key = readSigningKey(options.key, readKeyFile(options.key, '--key', 'signing_key_invalid'));
  const checked = checkDrop({ drop: dir, trustedKeys: [], unsigned: true });
  // Do not sign what licensees refuse.
  assertFullDrop(checked.manifest);
  const parts = await checkContents(dir, checked);
  const file = writeSignature(dir, checked.manifestBytes, key, options.add === true);
  const report = { file, manifest_sha256: checked.manifestSha256, parts: parts.length };
  if (options.json) printJson(report);
  else printLine(`Signed: ${file} (${intact(parts.length)}; manifest SHA-256 ${checked.manifestSha256}).`);
}

const intact = (parts: number): string => `${counted(parts, 'part')} ${parts === 1 ? 'is' : 'are'} intact`;
