/** The vendor's side: makes the manifest of a folder of parts. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../record/vocabulary.ts';
import { MANIFEST_FILE, writeDropFile } from './drop-files.ts';
import { LineSplitter } from './line-splitter.ts';
import { DROP_FORMAT, type DropPart, type Manifest, parseManifest } from './manifest.ts';
import { checkUnpackedSize, partFailure } from './part-reader.ts';
import { PartSource } from './unpack/part-source.ts';
import { unpackedChunks } from './unpack/unpack.ts';

const PART_NAME = /\.ndjson(?:\.gz|\.zst)?$/;

/** What a manifest contains besides its parts. */
export interface ManifestFacts {
  readonly dataset: string;
  readonly revision: number;
  /** RFC 3339. */
  readonly created: string;
  readonly pageTypes: 'complete' | 'partial';
  readonly kind?: 'full' | 'delta';
  /** Sources and licenses, for people. */
  readonly notice?: string;
}

/** Options for making a manifest. */
export interface MakeManifestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the name of each part before it is read. */
  readonly onPart?: (name: string) => void;
}

/**
 * Reads a part and returns its size, number of lines and checksum.
 *
 * @throws PagegateError drop_part_truncated, drop_part_unsupported, drop_part_missing, drop_file_kind
 * @throws PagegateError drop_too_large if it unpacks to more than a reader accepts
 */
export async function describePart(folder: string, name: string, signal?: AbortSignal): Promise<DropPart> {
  let records = 0;
  let unpackedBytes = 0;
  const count = (): void => {
    records += 1;
  };
  const lines = new LineSplitter({ line: count, overlong: count, repair: () => {} });
  let source: PartSource | undefined;
  try {
    const opened = new PartSource(join(folder, name));
    source = opened;
    for await (const chunk of unpackedChunks(name, () => opened.next())) {
      signal?.throwIfAborted();
      unpackedBytes += chunk.length;
      lines.push(chunk);
    }
    lines.end();
    const part = { name, bytes: source.sizeBytes, records, sha256: source.digest() };
    checkUnpackedSize(part, unpackedBytes);
    return part;
  } catch (error) {
    throw partFailure(name, error);
  } finally {
    source?.close();
  }
}

/** Returns a manifest and its text. @throws PagegateError manifest_invalid if no reader would accept it */
function textOf(facts: ManifestFacts, files: readonly DropPart[]): { manifest: Manifest; text: string } {
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
  return { manifest, text };
}

/** Returns a placeholder for a part that has not been read yet. */
const placeholderOf = (name: string): DropPart => ({ name, bytes: 0, records: 0, sha256: '0'.repeat(64) });

/**
 * Makes the manifest of a folder. It lists every `*.ndjson`, `*.ndjson.gz` and `*.ndjson.zst` file in the order of their names. Replaces an
 * existing manifest.
 *
 * @throws PagegateError drop_no_parts if the folder has no parts or cannot be read, and whatever `describePart` throws
 * @throws PagegateError manifest_invalid if no reader would accept it. Invalid facts are found before any part is read. Then nothing is written
 * @throws PagegateError drop_not_written
 */
export async function makeManifest(
  folder: string,
  facts: ManifestFacts,
  options: MakeManifestOptions = {},
): Promise<Manifest> {
  const names = partNames(folder);
  // Check the facts first, because reading the parts may take hours.
  textOf(facts, names.map(placeholderOf));
  const files: DropPart[] = [];
  for (const name of names) {
    options.onPart?.(name);
    files.push(await describePart(folder, name, options.signal));
  }
  const { manifest, text } = textOf(facts, files);
  writeDropFile(folder, MANIFEST_FILE, text);
  return manifest;
}

function partNames(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => PART_NAME.test(name));
  } catch (error) {
    throw fromSystem('drop_no_parts', folder, error);
  }
  if (names.length > 0) return names.sort();
  throw new PagegateError('drop_no_parts', `${folder} has none.`, { folder });
}
