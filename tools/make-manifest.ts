/**
 * Makes `manifest.json` for a folder of NDJSON parts (plain, .gz, .zst), in the order of their names:
 *
 *   node tools/make-manifest.ts FOLDER --dataset ID --revision N --page-types complete|partial [--created RFC3339] [--notice FILE]
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MANIFEST_FILE } from '../src/builder/drop-file.ts';
import { DROP_FORMAT, type DropPart, type Manifest, parseManifest } from '../src/builder/manifest.ts';
import { CHUNK_BYTES, unpackedChunks } from '../src/builder/unpack.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../src/record/vocabulary.ts';

export interface ManifestFacts {
  readonly dataset: string;
  readonly revision: number;
  /** RFC 3339. */
  readonly created: string;
  readonly pageTypes: 'complete' | 'partial';
  readonly kind?: 'full' | 'delta';
  readonly notice?: string;
}

const LF = 0x0a;
const CR = 0x0d;

/** Counts lines that are not blank, as the builder does: `push` every chunk, then `end`. */
class LineCounter {
  count = 0;
  #sizeBytes = 0;
  #last = 0;

  push(chunk: Buffer): void {
    let at = 0;
    for (let newline = chunk.indexOf(LF); newline !== -1; newline = chunk.indexOf(LF, at)) {
      this.#take(chunk, at, newline);
      this.end();
      at = newline + 1;
    }
    this.#take(chunk, at, chunk.length);
  }

  /** Ends a line. */
  end(): void {
    const isBlank = this.#sizeBytes === 0 || (this.#sizeBytes === 1 && this.#last === CR);
    if (!isBlank) this.count += 1;
    this.#sizeBytes = 0;
  }

  #take(chunk: Buffer, start: number, end: number): void {
    if (end === start) return;
    this.#sizeBytes += end - start;
    this.#last = chunk[end - 1]!;
  }
}

/** Measures one part: size, lines, checksum. Throws where it does not unpack to its end. */
export async function describePart(folder: string, name: string): Promise<DropPart> {
  const hash = createHash('sha256');
  const counter = new LineCounter();
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
    for await (const chunk of unpackedChunks(name, next)) counter.push(chunk);
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  } finally {
    isOpen = false;
    closeSync(descriptor);
  }
  counter.end();
  return { name, bytes, records: counter.count, sha256: hash.digest('hex') };
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
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      dataset: { type: 'string' },
      revision: { type: 'string', default: '1' },
      created: { type: 'string' },
      'page-types': { type: 'string', default: 'partial' },
      notice: { type: 'string' },
    },
  });
  const [folder] = positionals;
  if (folder === undefined || values.dataset === undefined) {
    throw new Error(
      'usage: make-manifest.ts FOLDER --dataset ID [--revision N] [--page-types complete|partial] [--created TIME] [--notice FILE]',
    );
  }
  const manifest = await makeManifest(folder, {
    dataset: values.dataset,
    revision: Number(values.revision),
    created: values.created ?? new Date().toISOString(),
    pageTypes: values['page-types'] === 'complete' ? 'complete' : 'partial',
    ...(values.notice === undefined ? {} : { notice: readFileSync(values.notice, 'utf8') }),
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
