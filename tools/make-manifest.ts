/** Makes `manifest.json` for a folder of NDJSON parts (plain, .gz, .zst), in the order of their names. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_FILE } from '../src/builder/drop-file.ts';
import { LineSplitter } from '../src/builder/line-splitter.ts';
import { DROP_FORMAT, type DropPart, type Manifest, parseManifest } from '../src/builder/manifest.ts';
import { CHUNK_BYTES, unpackedChunks } from '../src/builder/unpack.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../src/record/vocabulary.ts';
import { readOptions, refuse, wholeNumber } from './options.ts';

const USAGE =
  'Usage: node tools/make-manifest.ts FOLDER --dataset ID [--revision N] [--page-types complete|partial] [--created RFC3339] [--notice FILE]';

export interface ManifestFacts {
  readonly dataset: string;
  readonly revision: number;
  /** RFC 3339. */
  readonly created: string;
  readonly pageTypes: 'complete' | 'partial';
  readonly kind?: 'full' | 'delta';
  readonly notice?: string;
}

/** Measures one part: size, lines, checksum. Throws where it does not unpack to its end. */
export async function describePart(folder: string, name: string): Promise<DropPart> {
  const hash = createHash('sha256');
  let records = 0;
  const count = (): void => {
    records += 1;
  };
  const lines = new LineSplitter({ line: count, overlong: count, repair: () => {} });
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  const descriptor = openSync(join(folder, name), 'r');
  let bytes = 0;
  let isOpen = true;
  const next = (): Buffer | undefined => {
    const sizeBytes = isOpen ? readSync(descriptor, buffer, 0, CHUNK_BYTES, null) : 0;
    if (sizeBytes === 0) return undefined;
    bytes += sizeBytes;
    const chunk = buffer.subarray(0, sizeBytes);
    hash.update(chunk);
    return chunk;
  };
  try {
    for await (const chunk of unpackedChunks(name, next)) lines.push(chunk);
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  } finally {
    isOpen = false;
    closeSync(descriptor);
  }
  lines.end();
  return { name, bytes, records, sha256: hash.digest('hex') };
}

/** Writes the manifest of a drop whose parts are already described; returns it. */
export function writeManifest(folder: string, facts: ManifestFacts, files: readonly DropPart[]): Manifest {
  const manifest: Manifest = {
    format: DROP_FORMAT,
    dataset: facts.dataset,
    revision: facts.revision,
    created: facts.created,
    kind: facts.kind ?? 'full',
    vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION },
    page_types: facts.pageTypes,
    ...(facts.notice === undefined ? {} : { notice: facts.notice }),
    files,
  };
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  parseManifest(Buffer.from(text));
  const path = join(folder, MANIFEST_FILE);
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
  return manifest;
}

/** Makes the manifest of a folder: every `*.ndjson`, `*.ndjson.gz`, `*.ndjson.zst` in it, by name. */
export async function makeManifest(folder: string, facts: ManifestFacts): Promise<Manifest> {
  const names = readdirSync(folder).filter((name) => /\.ndjson(\.gz|\.zst)?$/.test(name));
  const files: DropPart[] = [];
  for (const name of names.sort()) files.push(await describePart(folder, name));
  return writeManifest(folder, facts, files);
}

async function main(): Promise<void> {
  const defaults = {
    dataset: '',
    revision: '1',
    created: new Date().toISOString(),
    'page-types': 'partial',
    notice: '',
  };
  const { values, positionals } = await readOptions(USAGE, defaults, true);
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1) refuse(`One folder with parts, not ${positionals.length}.`);
  if (values.dataset === '') refuse('--dataset is missing.');
  const pageTypes = values['page-types'];
  if (pageTypes !== 'complete' && pageTypes !== 'partial') refuse('--page-types must be complete or partial.');
  const manifest = await makeManifest(folder, {
    dataset: values.dataset,
    revision: wholeNumber(values, 'revision', 1),
    created: values.created,
    pageTypes,
    ...(values.notice === '' ? {} : { notice: readFileSync(values.notice, 'utf8') }),
  });
  const records = manifest.files.reduce((sum, part) => sum + part.records, 0);
  process.stdout.write(`${join(folder, MANIFEST_FILE)}: ${manifest.files.length} parts, ${records} records\n`);
}

if (import.meta.main) {
  await main().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
